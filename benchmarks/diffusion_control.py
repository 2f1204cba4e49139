"""Does VNLEM-DD gain from the graph, or only from nearness? VNLEM, VNLEM in a small window, VNLEM-DD.

Paper's preset, central 256x256 of two of scikit-image's images, noise variance 0.3, seed 0; SNR in dB.
"""

import numpy as np
from skimage import data

import vnlem


def main() -> None:
    sigma = float(np.sqrt(0.3))
    print("| | VNLEM | VNLEM, 11x11 | VNLEM-DD |\n|---|---|---|---|")
    for name, image in {"camera": data.camera(), "coins": data.coins()}.items():
        top, left = ((n - 256) // 2 for n in image.shape)
        clean, _, _ = vnlem.noise.standardise(image[top : top + 256, left : left + 256])
        noisy = vnlem.noise.add_gaussian(clean, sigma, seed=0)
        results = (
            vnlem.denoise_vnlem(noisy, sigma, preset="paper"),
            vnlem.denoise_vnlem(noisy, sigma, preset="paper", patch_distance=5),
            vnlem.denoise_vnlem_dd(noisy, sigma, preset="paper"),
        )
        scores = " | ".join(f"{vnlem.metrics.snr(clean, result):.2f}" for result in results)
        print(f"| {name} | {scores} |", flush=True)


if __name__ == "__main__":
    main()
