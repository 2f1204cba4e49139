"""VNLEM-DD: fast against reference, its graph against dense matrices, odd images, bad values."""

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial.distance
from skimage import data

import vnlem
from vnlem.diffusion.graph import patch_graph
from vnlem.diffusion.spectrum import leading_eigenpairs
from vnlem.features.canonical import Extended, whole_region
from vnlem.features.rings import layout
from vnlem.methods.vnlem_dd_embedding import embed, region_of, structure
from vnlem.methods.vnlem_dd_params import VnlemDdParams
from vnlem.methods.vnlem_params import check_params, make_rule, search_of
from vnlem.pipeline.run import Job
from vnlem.pipeline.workers import Pool

THREADS = Pool(2)


def snr(estimate, clean):
    return 10 * np.log10(clean.var() / np.mean((estimate - clean) ** 2))


@pytest.fixture(scope="module")
def noisy():
    clean = data.camera()[190:210, 200:220].astype(float)
    clean = (clean - clean.mean()) / clean.std()
    return clean, (clean + np.random.default_rng(0).normal(0, 0.15, clean.shape)).astype(np.float32)


def paper_params(**changes):
    base = vars(check_params())
    return VnlemDdParams(
        **base
        | {"embedding_dim": 30, "diffusion_time": 1.0, "graph_bandwidth": 16.5, "local_bandwidth": False}
        | {"flat_guard": False, "scope": "window"}
        | changes
    )


def graph_of(image, reach=10, **changes):
    params = paper_params(patch_distance=reach)
    rings = layout(13)
    extended = Extended.of(image[None], rings, 1.0)
    rule = make_rule(params, 0.15, rings)
    options = {"factor": rings.distance_scale, "bandwidth": 16.5, "pool": THREADS} | changes
    region = whole_region(extended, rings, 1.0, 30.0)
    return patch_graph(region, search_of(params, rings, image.shape), rule, **options)


def test_the_graph_of_an_image_has_the_dense_eigenpairs(noisy):
    matrix = graph_of(noisy[1]).sparse().toarray()
    root = np.sqrt(matrix.sum(axis=1))
    most = [len(root) - 31, len(root) - 1]
    values, vectors = scipy.linalg.eigh(matrix / np.multiply.outer(root, root), subset_by_index=most)
    exact = vnlem.DiffusionMap(matrix, n_components=30)
    np.testing.assert_allclose(exact.eigenvalues, values[::-1], atol=1e-8)
    fast = vnlem.DiffusionMap(graph_of(noisy[1]), n_components=30)
    np.testing.assert_allclose(fast.eigenvalues, values[::-1], atol=1e-6)
    for found, error in ((exact, 1e-6), (fast, 1e-2)):
        assert scipy.linalg.subspace_angles(found.eigenvectors * root[:, None], vectors).max() < error


def test_the_residual_of_an_images_eigenpairs_is_what_is_promised():
    clean, _, _ = vnlem.noise.standardise(data.camera()[100:228, 160:288])
    image = vnlem.noise.add_gaussian(clean, np.sqrt(0.3), seed=0).astype(np.float32)
    graph = graph_of(image)
    found = leading_eigenpairs(graph, graph.degrees(), 31)
    vectors = found.vectors.reshape(-1, 31).astype(np.float64)
    matrix = graph.sparse()  # by now D^-1/2 W D^-1/2
    residual = np.linalg.norm(matrix @ vectors - vectors * found.eigenvalues, axis=0)
    assert residual.max() < 1e-4
    np.testing.assert_allclose(found.residual, residual.max(), rtol=0.02)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(31), atol=1e-6)
    assert found.products <= 8


def test_many_coordinates_of_a_small_image_converge():
    # The bases of the solver are half as large as the space, and nearly dependent.
    steps = np.add.outer(np.arange(32) > 16, np.arange(32) > 10)
    image = (steps + np.random.default_rng(0).normal(0, 0.3, steps.shape)).astype(np.float32)
    graph = graph_of(image)
    found = leading_eigenpairs(graph, graph.degrees(), 150, 1e-3)
    assert found.residual < 1e-3
    assert found.products <= 20


@pytest.mark.parametrize("reach", [3, 10])
def test_the_weights_are_gaussians_of_aligned_distances(noisy, reach):
    image = noisy[1]
    matrix = graph_of(image, reach).sparse().toarray()
    rings = layout(13)
    extended = Extended.of(image[None], rings, 1.0)
    region = whole_region(extended, rings, 1.0, 30.0)
    features = region.canonical[:, :20].reshape(400, -1).astype(np.float64)
    squared = scipy.spatial.distance.cdist(features, features, "sqeuclidean") * rings.distance_scale
    rows, columns = np.divmod(np.arange(400), 20)
    near = [abs(np.subtract.outer(side, side)) <= reach for side in (rows, columns)]
    np.testing.assert_allclose(matrix, np.where(near[0] & near[1], np.exp(-squared / 16.5**2), 0), atol=1e-5)


def test_local_bandwidths_are_distances_to_the_fiftieth_neighbour(noisy):
    # Weights at the two bandwidths give the distances, and with them the scale of each pixel, back.
    image = noisy[1]
    wide = graph_of(image, bandwidth=40.0).sparse().toarray()
    squared = np.where(wide > 0, -np.log(np.maximum(wide, 1e-30)) * 1600, np.inf)
    np.fill_diagonal(squared, np.inf)
    scales = np.sqrt(np.maximum(np.sort(squared, axis=1)[:, 49], 4.0**2))
    truth = np.exp(-squared / np.multiply.outer(scales, scales))
    np.fill_diagonal(truth, 1)
    local = graph_of(image, bandwidth=4.0, local=True).sparse().toarray()
    np.testing.assert_allclose(local, truth, atol=2e-3)


def test_the_papers_preset_agrees_with_the_printed_algorithm():
    clean, _, _ = vnlem.noise.standardise(data.camera()[190:214, 200:224])
    sigma = np.sqrt(0.3)
    image = vnlem.noise.add_gaussian(clean, sigma, seed=0)
    printed, fast = (
        vnlem.denoise_vnlem_dd(image, sigma, preset="paper", engine=engine, shape="disc", scope="window")
        for engine in ("printed", "fast")
    )
    assert abs(snr(fast, clean) - snr(printed, clean)) < 0.3
    assert np.corrcoef(fast.ravel(), printed.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("options", [{"preset": "paper"}, {"preset": "auto"}, {"scope": "image"}])
def test_workers_change_not_a_bit(options):
    image = data.camera()[200:230, 200:240] + np.random.default_rng(1).normal(0, 20, (30, 40))
    one, two = (vnlem.denoise_vnlem_dd(image, 20, workers=n, **options) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_the_image_scope_with_the_papers_preset_denoises():
    clean = data.camera()[150:200, 200:250].astype(float)
    image = clean + np.random.default_rng(1).normal(0, 20, clean.shape)
    result = vnlem.denoise_vnlem_dd(image, 20, preset="paper", scope="image")
    assert np.std(result - clean) < 0.8 * np.std(image - clean)


def test_trust_is_full_at_an_edge_and_none_in_the_flat():
    rng = np.random.default_rng(2)
    step = np.where(np.arange(60) < 30, -2.0, 2.0) + rng.normal(0, 0.5, (60, 60))
    trust = structure(step[None].astype(np.float32), 0.5, 13)
    assert trust[:, 26:34].min() > 0.99
    assert trust[:, :15].mean() < 0.05


def test_in_flat_regions_the_guard_gives_vnlems_result():
    rng = np.random.default_rng(3)
    image = np.where(np.arange(80) < 40, -2.0, 2.0) + rng.normal(0, 0.5, (40, 80))
    guarded, free = (vnlem.denoise_vnlem_dd(image, 0.5, flat_guard=on) for on in (True, False))
    plain = vnlem.denoise_vnlem(image, 0.5, adapt=False)
    flat = np.s_[12:28, 4:16]
    assert np.abs(guarded - plain)[flat].mean() < 0.3 * np.abs(free - plain)[flat].mean()


def test_two_flat_halves_at_a_small_bandwidth_are_two_parts():
    image = np.where(np.arange(40) < 20, -5.0, 5.0) + np.random.default_rng(4).normal(0, 0.1, (30, 40))
    result, info = vnlem.denoise_vnlem_dd(
        image, 0.1, preset="paper", graph_bandwidth=0.2, embedding_dim=5, return_info=True
    )
    assert np.isfinite(result).all()
    assert info.details["graph_parts"] > 1
    assert np.abs(result - np.sign(image) * 5).max() < 1


def test_pure_noise_and_a_constant_give_finite_results():
    noise = np.random.default_rng(5).normal(0, 1, (30, 30))
    with pytest.warns(UserWarning, match="nothing but noise"):
        denoised = vnlem.denoise_vnlem_dd(noise, 1.0)
    assert denoised.std() < 0.5
    with pytest.warns(UserWarning, match="nothing but noise"):
        constant = vnlem.denoise_vnlem_dd(np.full((20, 20), 3.0), 1.0, preset="paper")
    np.testing.assert_allclose(constant, 3, atol=1e-4)


def test_colour_and_units_follow_the_frame(noisy):
    image = noisy[1]
    single = vnlem.denoise_vnlem_dd(image, 0.15, preset="paper")
    scaled = vnlem.denoise_vnlem_dd(100 * image + 7, 15, preset="paper")
    assert np.mean(np.abs(scaled - (100 * single + 7)) < 0.1) > 0.97
    colour = vnlem.denoise_vnlem_dd(np.stack([image] * 3), 0.15, preset="paper", channel_axis=0)
    assert np.mean(np.abs(colour - single) < 1e-2) > 0.97


def test_the_map_has_the_coordinates_asked_for(noisy):
    job = Job(noisy[1][None], 0.15, paper_params(embedding_dim=7), 1, None)
    diffusion = embed(job, job.params, region_of(job, job.params))
    assert diffusion.embedding.shape == (20, 20, 8)
    assert (diffusion.embedding[..., 7] == 0).all()
    assert len(job.details["eigenvalues"]) == 8
    assert job.details["residual"] <= 1e-3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"embedding_dim": 1000, "image": (24, 24)}, "at most 575"),
        ({"embedding_dim": 1001}, "at most 1000"),
        ({"embedding_dim": 0}, "embedding_dim"),
        ({"diffusion_time": 0}, "diffusion_time"),
        ({"diffusion_time": -1}, "diffusion_time"),
        ({"graph_bandwidth": 0}, "graph_bandwidth"),
        ({"scope": "everywhere"}, "scope"),
        ({"engine": "printed"}, "preset='paper'"),
        ({"engine": "printed", "preset": "paper", "flat_guard": True}, "flat_guard"),
        ({"engine": "printed", "preset": "paper", "embedding_dim": 1000, "image": (24, 24)}, "at most 575"),
        ({"n_neighbors": 500}, "window holds only 441"),
    ],
)
def test_bad_values_are_refused(arguments, named):
    arguments = dict(arguments)
    height, width = arguments.pop("image", (40, 40))
    image = np.random.default_rng(8).standard_normal((height, width)) + np.arange(width)
    with pytest.raises(ValueError, match=named):
        vnlem.denoise_vnlem_dd(image, 1.0, **arguments)


def test_a_pixel_among_many_like_ones_keeps_its_weight():
    # In single precision the patches of a flat area have zero distance, and there are more of them than
    # neighbours.
    image = np.tile([0.09, 0.08, 0.04, 0.07], (27, 27, 1))
    image[20, 5] *= 10
    image += 1e-6 * np.random.default_rng(0).standard_normal(image.shape)
    result = vnlem.denoise_vnlem_dd(image, 1e-6, scope="image", average_down=False, channel_axis=-1)
    np.testing.assert_allclose(result, image, atol=1e-4)


@pytest.mark.parametrize("method", ["vnlem", "vnlem-dd"])
def test_a_window_wider_than_the_image_is_the_image(method):
    image = np.random.default_rng(2).normal(0, 1, (15, 17)) + np.arange(17)
    options = {"method": method, "n_neighbors": 60, "coarse_patch_size": 0, "patch_size": 5}
    wide, wider = (vnlem.denoise(image, 1.0, patch_distance=d, **options) for d in (17, 100))
    np.testing.assert_array_equal(wide, wider)
