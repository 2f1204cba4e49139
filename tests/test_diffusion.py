"""Diffusion maps against known spectra, dense LAPACK and the laws of the random walk."""

import numpy as np
import pytest
import scipy.linalg
from scipy.sparse import coo_array, csr_array, dia_array, kron
from scipy.sparse.linalg import aslinearoperator

import vnlem
from vnlem.diffusion.levels import Level
from vnlem.diffusion.stencil import StencilGraph
from vnlem.kernels.cpu import small
from vnlem.pipeline.workers import Pool

THREADS = Pool(2)


def circle(n):
    return dia_array((np.ones((4, n)), [1, -1, n - 1, 1 - n]), shape=(n, n)).tocsr()


def random_graph(height, width, reach, seed=0):
    """A stencil graph with smooth random weights."""
    graph = StencilGraph(height, width, reach, THREADS)
    rng = np.random.default_rng(seed)
    inside = graph.inside(graph.weights)
    inside[...] = rng.uniform(0.2, 1, inside.shape)
    graph.clip()
    return graph


def test_the_spectrum_of_the_circle_is_that_of_the_cosine():
    n = 1500
    found = vnlem.DiffusionMap(circle(n), n_components=6)
    k = np.array([0, 1, 1, 2, 2, 3, 3])
    np.testing.assert_allclose(found.eigenvalues, np.cos(2 * np.pi * k / n), atol=1e-12)
    assert found.residual < 1e-8
    # Equal steps around the circle are equal diffusion distances.
    steps = found.diffusion_distance(np.arange(n - 1), np.arange(1, n))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-5)


def test_the_spectrum_of_the_flat_torus_is_the_sum_of_two_circles():
    n, m = 18, 25
    eye = [csr_array(np.eye(k)) for k in (n, m)]
    torus = kron(circle(n), eye[1]) + kron(eye[0], circle(m))
    angle = [2 * np.pi * np.arange(k) / k for k in (n, m)]
    truth = np.sort(np.add.outer(np.cos(angle[0]), np.cos(angle[1])).ravel() / 2)[::-1]
    for form in (torus, torus.toarray(), aslinearoperator(csr_array(torus))):
        found = vnlem.DiffusionMap(form, n_components=12)
        np.testing.assert_allclose(found.eigenvalues, truth[:13], atol=1e-10)


def test_two_blocks_with_a_weak_bridge_are_told_apart_by_the_first_coordinate():
    weights = np.kron(np.eye(2), np.ones((20, 20)))
    weights[5, 30] = weights[30, 5] = 0.01
    found = vnlem.DiffusionMap(weights, n_components=2)
    first = found.embedding[:, 0]
    assert (np.sign(first[:20]) == np.sign(first[0])).all()
    assert (np.sign(first[20:]) == -np.sign(first[0])).all()
    assert found.diffusion_distance(0, 30) > 50 * found.diffusion_distance(0, 1)


def test_with_all_coordinates_the_distance_is_that_of_transition_probabilities():
    rng = np.random.default_rng(0)
    weights = rng.random((12, 12))
    weights = weights + weights.T
    found = vnlem.DiffusionMap(weights, n_components=11, time=2)
    degrees = weights.sum(axis=1)
    walk = np.linalg.matrix_power(weights / degrees[:, None], 2)
    truth = np.sqrt(((walk[3] - walk[7]) ** 2 / degrees).sum())
    assert found.diffusion_distance(3, 7) == pytest.approx(truth)


def test_alpha_divides_by_the_density():
    rng = np.random.default_rng(1)
    weights = rng.random((15, 15))
    weights = weights + weights.T
    degrees = weights.sum(axis=1)
    by_hand = vnlem.DiffusionMap(weights / np.multiply.outer(degrees, degrees), n_components=3)
    found = vnlem.DiffusionMap(weights, n_components=3, alpha=1)
    np.testing.assert_allclose(found.embedding, by_hand.embedding, atol=1e-12)


def test_a_graph_in_parts_is_reported_with_their_number():
    weights = np.kron(np.eye(3), np.ones((5, 5)))
    for form in (weights, csr_array(weights), aslinearoperator(weights)):
        with pytest.warns(UserWarning, match="3 components"):
            assert vnlem.DiffusionMap(form, n_components=4).n_parts == 3
    graph = StencilGraph(6, 20, 2)
    graph.inside(graph.weights)[...] = 1
    graph.clip()
    inside = graph.inside(graph.weights)
    for slot, (_, dx) in enumerate(graph.forward):
        # No edge crosses from column 9 to column 10.
        columns = np.arange(20)
        inside[:, (columns < 10) != (columns + dx < 10), slot] = 0
    with pytest.warns(UserWarning, match="2 components"):
        assert vnlem.DiffusionMap(graph, n_components=4).n_parts == 2


def test_signs_and_values_are_the_same_every_time():
    graph = kron(circle(40), circle(41)).tocsr()
    one, two = (vnlem.DiffusionMap(graph, n_components=5) for _ in range(2))
    np.testing.assert_array_equal(one.embedding, two.embedding)
    largest = np.abs(one.eigenvectors * np.sqrt(one.degrees)[:, None]).argmax(axis=0)
    assert (one.eigenvectors[largest, np.arange(6)] > 0).all()


@pytest.mark.parametrize(
    ("affinity", "arguments", "named"),
    [
        (np.ones((4, 5)), {}, "square"),
        (np.triu(np.ones((4, 4))), {"n_components": 2}, "symmetric"),
        (-np.ones((4, 4)), {"n_components": 2}, "negative"),
        (np.full((4, 4), np.nan), {"n_components": 2}, "NaN"),
        (np.ones((4, 4)), {"n_components": 4}, "only 3 coordinates"),
        (np.ones((4, 4)), {"n_components": 0}, "n_components"),
        (np.ones((4, 4)), {"n_components": 2, "time": 0}, "time"),
        (np.ones((4, 4)), {"n_components": 2, "alpha": np.inf}, "alpha"),
        (np.diag([1.0, 0, 1, 0]), {"n_components": 2}, "numbers 1, 3"),
        (coo_array(np.diag([1.0, 0, 1, 0])), {"n_components": 2}, "numbers 1, 3"),
    ],
)
def test_bad_affinities_are_refused(affinity, arguments, named):
    with pytest.raises(ValueError, match=named):
        vnlem.DiffusionMap(affinity, **arguments)


@pytest.mark.parametrize("reach", [1, 2, 3])
def test_a_stencil_acts_like_its_matrix(reach):
    graph = random_graph(9, 7, reach)
    matrix = graph.sparse().toarray()
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(graph.degrees(), matrix.sum(axis=1))
    vectors = np.random.default_rng(2).standard_normal((63, 3))
    np.testing.assert_allclose(graph @ vectors, matrix @ vectors, atol=1e-5)
    blocks = np.kron(np.eye(5), np.ones((2, 1)))[:9], np.kron(np.eye(4), np.ones((2, 1)))[:7]
    to_blocks = np.kron(*blocks)
    np.testing.assert_allclose(
        graph.coarsened().sparse().toarray(), to_blocks.T @ matrix @ to_blocks, rtol=1e-5
    )
    factors = np.random.default_rng(3).uniform(0.5, 2, 63)
    graph.scale(factors)
    np.testing.assert_allclose(
        graph.sparse().toarray(), matrix * np.multiply.outer(factors, factors), rtol=1e-6
    )


def test_the_multilevel_solver_finds_the_dense_eigenpairs_whatever_the_workers():
    matrix = random_graph(36, 30, 3).sparse().toarray()
    root = np.sqrt(matrix.sum(axis=1))
    most = [len(root) - 9, len(root) - 1]
    values, vectors = scipy.linalg.eigh(matrix / np.multiply.outer(root, root), subset_by_index=most)
    found = []
    for workers in (1, 2):
        graph = random_graph(36, 30, 3)
        graph.pool = Pool(workers)
        found.append(vnlem.DiffusionMap(graph, n_components=8))
    np.testing.assert_array_equal(found[0].embedding, found[1].embedding)
    assert found[0].residual < 1e-4
    np.testing.assert_allclose(found[0].eigenvalues, values[::-1], atol=1e-6)
    angles = scipy.linalg.subspace_angles(found[0].eigenvectors * root[:, None], vectors)
    assert angles.max() < 0.02


def test_blocks_obey_the_algebra_of_matrices():
    graph = random_graph(61, 150, 3)  # three pieces
    rows = graph.rows()
    rng = np.random.default_rng(5)
    x, p, d = (graph.pad(rng.standard_normal((61 * 150, n)).astype(np.float32)) for n in (40, 24, 8))
    x64, p64, d64 = (block.astype(np.float64) for block in (x, p, d))
    np.testing.assert_allclose(
        rows.inner([x, p], [d, x]), np.hstack([x64, p64]).T @ np.hstack([d64, x64]), atol=5e-3
    )
    np.testing.assert_array_equal(rows.take(x, np.array([3, 7, 30, 1, 0, 2, 4, 9]), "some")[:, 2], x[:, 30])
    q = np.linalg.qr(x64)[0]
    lengths = rows.project(d, q.astype(np.float32))
    d64 -= q @ (q.T @ d64)
    np.testing.assert_allclose(d, d64, atol=1e-5)
    np.testing.assert_allclose(lengths, np.linalg.norm(d64, axis=0), rtol=1e-5)
    turn, scale = rng.standard_normal((72, 40)), rng.uniform(1, 2, 40)
    step = rows.room("steps", 40)
    image, values = rng.standard_normal(x.shape).astype(np.float32), rng.uniform(0, 1, 40)
    residual = rows.room("residual", 40)
    lengths = rows.residual(x, image, values, residual)
    np.testing.assert_allclose(residual, image - x64 * values, atol=1e-5)
    np.testing.assert_allclose(lengths, np.linalg.norm(residual, axis=0), rtol=1e-5)
    np.testing.assert_allclose(rows.residual_lengths(x, image, values), lengths, rtol=1e-6)
    rows.combine([p, d], turn, scale, step)
    rows.turn(x, [p, d], turn)
    added = np.hstack([p64, d64]) @ turn[40:]
    np.testing.assert_allclose(step, added * scale, atol=1e-4)
    np.testing.assert_allclose(x, x64 @ turn[:40] + added, atol=1e-4)
    # The output may overwrite an input.
    more, wide = rng.standard_normal((80, 40)), np.hstack([p, d, d])
    rows.combine([wide], more, scale, wide)
    expected = np.hstack([p64, d64, d64]) @ more[40:] * scale
    np.testing.assert_allclose(wide, expected, atol=1e-4)


def test_a_coarse_level_is_the_fine_one_seen_by_orthonormal_blocks():
    graph = random_graph(13, 10, 3)
    coarse = graph.coarsened()
    bottom = Level(coarse, coarse.degrees(), None)
    level = Level(graph, graph.degrees(), bottom)
    n = coarse.n_vertices
    unit = np.pad(np.eye(n, dtype=np.float32), ((0, 0), (0, -n % 8)))
    fine = np.zeros((graph.padded_size, unit.shape[1]), dtype=np.float32)
    level.prolong(coarse.pad(unit), fine)
    columns = graph.inside(fine).reshape(graph.n_vertices, -1)[:, :n]
    np.testing.assert_allclose(columns.T @ columns, np.eye(n), atol=1e-6)
    np.testing.assert_allclose(columns.T @ (graph.sparse() @ columns), coarse.sparse().toarray(), atol=1e-6)
    np.testing.assert_allclose(
        coarse.inside(level.restricted(fine)).reshape(n, -1)[:, :n], np.eye(n), atol=1e-6
    )


def test_small_products_are_numpys():
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((9, 9)), rng.standard_normal((9, 5))
    np.testing.assert_allclose(small.multiply(a, b), a @ b, atol=1e-13)
    np.testing.assert_allclose(small.congruent(a, b), b.T @ a @ b, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_reflections_and_rotations_solve_small_symmetric_problems(n):
    matrix = np.random.default_rng(4).standard_normal((n, n))
    matrix = matrix + matrix.T
    check_largest_eigenpairs(matrix, n)
    check_largest_eigenpairs(matrix, (n + 1) // 2)


def test_repeated_eigenvalues_have_orthonormal_eigenvectors():
    axes = np.linalg.qr(np.random.default_rng(7).standard_normal((24, 24)))[0]
    for values in (np.repeat([1.0, 0.5, -2.0], 8), np.ones(24), np.zeros(24), np.eye(24)[0]):
        matrix = axes * values @ axes.T
        check_largest_eigenpairs((matrix + matrix.T) / 2, 10)


def test_numbers_whose_squares_vanish_do_no_harm():
    check_largest_eigenpairs(np.full((20, 20), 1e-160) + np.diag(np.arange(20.0)), 6)


def check_largest_eigenpairs(matrix, count):
    values, vectors = small.largest_eigenpairs(matrix, count)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:count], atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)


@pytest.mark.parametrize(
    ("height", "width", "reach", "count"), [(9, 13, 3, 5), (5, 20, 2, 50), (17, 8, 1, 3)]
)
def test_local_scales_are_the_distances_of_ranked_neighbours(height, width, reach, count):
    graph = random_graph(height, width, reach)
    graph.slots[:] = np.round(graph.slots, 1)  # ties
    # Offsets that leave the image are not compared.
    inside = graph.inside(graph.weights)
    for slot, (dy, dx) in enumerate(graph.forward):
        y, x = np.mgrid[:height, :width]
        outside = (y + dy >= height) | (x + dx < 0) | (x + dx >= width)
        inside[outside, slot] = np.nan
    squared = graph_distances(graph)
    found = graph.local_scales(0.3, count)
    for pixel, row in enumerate(squared):
        near = np.sort(row[np.isfinite(row)])[:count]
        assert found[pixel] == np.maximum(near[-1] - np.float32(0.3), 0)


def graph_distances(graph):
    """The weights between all pairs of different pixels, NaN if there is no edge."""
    y, x = np.divmod(np.arange(graph.n_vertices), graph.width)
    inside = graph.inside(graph.weights)
    squared = np.full(graph.shape, np.nan, dtype=np.float32)
    for slot, (dy, dx) in enumerate(graph.forward):
        for p in np.flatnonzero((y + dy < graph.height) & (x + dx >= 0) & (x + dx < graph.width)):
            q = (y[p] + dy) * graph.width + x[p] + dx
            squared[p, q] = squared[q, p] = inside[y[p], x[p], slot]
    return squared


@pytest.mark.parametrize("width", [5, 8, 21])
def test_weights_are_gaussians_of_corrected_distances(width):
    graph = random_graph(6, width, 2)
    squared = graph_distances(graph)
    inverse = np.random.default_rng(8).uniform(0.5, 2, graph.n_vertices)
    graph.gaussian(inverse, 0.4)
    expected = np.exp(-np.maximum(squared - 0.4, 0) * np.multiply.outer(inverse, inverse))
    expected[np.isnan(expected)] = 0
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(graph.sparse().toarray(), expected, atol=1e-5)
    outside = np.ones((graph.height + 4, graph.stride), dtype=bool)
    graph.inside(outside)[...] = False
    assert not graph.weights[outside].any()
