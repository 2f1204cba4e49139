"""
A live picture
==============

``vnlem.Stream`` takes frames one by one and returns each denoised frame a few frames later. Here the frames
come from a video file through OpenCV; ``cv2.VideoCapture(0)`` is a camera.
``pip install opencv-python-headless`` brings it.
"""

import tempfile
from pathlib import Path

import cv2
import matplotlib.pyplot as plt
import numpy as np

import vnlem
from vnlem.bench.phantoms import half_discs

# %%
# Write a noisy video to read.

still = 60 + 45 * half_discs(6, 18, 3, seed=4, size=160)
scene = [np.roll(still, (frame, 2 * frame), axis=(0, 1))[:128, :128] for frame in range(12)]
rng = np.random.default_rng(1)
file = Path(tempfile.mkdtemp(), "camera.avi")
writer = cv2.VideoWriter(str(file), cv2.VideoWriter_fourcc(*"FFV1"), 25, (128, 128), isColor=False)
for frame in scene:
    writer.write(np.clip(frame + rng.normal(0, 20, frame.shape), 0, 255).astype(np.uint8))
writer.release()

# %%
# The loop of a live picture. Any generator of frames works.


def frames_of(capture):
    while True:
        there, frame = capture.read()
        if not there:
            return
        yield frame[:, :, 0]  # OpenCV makes three equal channels of grey


capture = cv2.VideoCapture(str(file))
stream = vnlem.Stream(delay=2, profile="fast")
live = list(stream.denoise(frames_of(capture)))
capture.release()
print(f"{len(live)} frames, noise {stream.info.sigma:.1f} from {stream.info.details['noise_from']}")

# %%
# In napari a layer grows with the frames; ``thread_worker`` keeps the window responsive::
#
#     import napari
#     from napari.qt.threading import thread_worker
#
#     viewer = napari.Viewer()
#
#     def show(frame):
#         if "live" not in viewer.layers:
#             viewer.add_image(frame[None], name="live")
#         else:
#             layer = viewer.layers["live"]
#             layer.data = np.concatenate([layer.data, frame[None]])
#             viewer.dims.set_current_step(0, len(layer.data) - 1)
#
#     @thread_worker(connect={"yielded": show})
#     def watch():
#         yield from vnlem.Stream(delay=2).denoise(frames_of(cv2.VideoCapture(0)))
#
#     watch()
#     napari.run()

capture = cv2.VideoCapture(str(file))
noisy = list(frames_of(capture))
capture.release()
figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for panel, title, picture in zip(
    axes, ("scene", "camera", "live"), (scene[8], noisy[8], live[8]), strict=True
):
    panel.imshow(picture, cmap="gray", vmin=0, vmax=255)
    panel.set_title(title)
    panel.axis("off")
plt.show()
