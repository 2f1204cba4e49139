// The nearest patches of a reference among the candidates of some windows: see candidates.h.
#include "candidates.h"

namespace vnlem {

namespace {

// A group uses turned members only if they are at least one in this many: a few are found by chance anywhere.
constexpr int64_t kOneIn = 8;
// Turned patches this near to the reference are not taken.
constexpr int64_t kNear = 3;
// Distances and their bounds may be wrong by this share of themselves and of the patches' squared norm.
constexpr float kRounding = 1e-5f;

// Make all but the k smallest values infinite; ties go to the lower index.
void keep_smallest(const Array<float, 1>& values, int64_t k) {
    const float threshold = threshold_of(values, k, 0);
    int64_t ties = k;
    for (int64_t i = 0; i < values.shape[0]; i++) ties -= values[i] < threshold;
    for (int64_t i = 0; i < values.shape[0]; i++) {
        if (values[i] == threshold && ties > 0)
            ties--;
        else if (!(values[i] < threshold))
            values[i] = INFINITY;
    }
}

// How far a shift is from one by whole cells.
int64_t from_whole_cells(int64_t shift, int64_t cell) {
    const int64_t rest = shift % cell;
    return rest < 0 ? rest + cell : rest;
}

// The ranks of a window's candidates under transforms.
struct Transformed {
    Reference reference;
    PatchShape shape;
    MatchRule rule;
    float reach;  // a transform has to bring a patch nearer than this
    bool as_it_is;  // whether the patch that is only shifted competes too
    int64_t lanes;
    Array<float, 2> numbers;
    Array<Wide, 2> rows;
    float* values;
    int32_t* which;
    Array<int32_t, 2> allowed;  // see `Ranks`
    int64_t own_row;  // of the reference in the window
};

// For kWide candidates in row y.
template <int kSide, class Fit>
Fit best_fit(const Transformed& task, int64_t y, Fit fit) {
    const int64_t side = kSide ? kSide : task.shape.side;
    const int32_t symmetries = int32_t(task.rule.symmetries);
    for (int32_t order = 0; order < task.rule.orders; order++) {
        PartProducts sums = {};
        const float* numbers = task.numbers[order].data;
        for (int64_t plane = 0; plane < task.shape.planes; plane++)
            numbers = add_part_products<kSide>(task.rows[plane].data + y * side, numbers, side, sums);
        compete(sums, order * symmetries, order == 0 && !task.as_it_is, symmetries, fit);
    }
    return fit;
}

// Give each candidate of a window the transform that fits it best, if that improves its rank. All transforms have
// the same factor and penalty: the largest correlation has the best rank. Not inlined, to allocate registers for one
// patch size at a time.
template <int kSide, bool kCells>
__attribute__((noinline)) void rank_transformed(const Transformed task, const SearchWindow window) {
    const Reference& reference = task.reference;
    const PatchShape& shape = task.shape;
    const int64_t side = kSide ? kSide : shape.side;
    for (int64_t x = 0; x < window.columns; x += kWide) {
        int64_t split = 0;  // rows of the image that are split
        for (int64_t y = 0; y < window.rows; y++) {
            const int64_t at = y * shape.stride + x;
            // Candidates whose invariants differ too much are left out: no transform can bring them nearer than
            // `reach`.
            const Wide level = load<kWide>(window.level + at) - reference.level;
            const Wide contrast = load<kWide>(window.contrast + at) - reference.contrast;
            if (!any(level * level + contrast * contrast < spread<kWide>(task.reach))) continue;
            for (split = larger_of(split, y); split < y + side; split++)
                for (int64_t plane = 0; plane < shape.planes; plane++)
                    split_row(window.pixels + plane * shape.plane_step + split * shape.stride + x, side,
                              task.rows[plane].data + split * side);
            BestFit fit;
            if constexpr (kCells) {
                const int64_t row = from_whole_cells(y - task.own_row, task.rule.cell);
                fit = best_fit<kSide>(task, y, AllowedFit{{}, load<kWide>(&task.allowed(row, x))});
            } else {
                fit = best_fit<kSide>(task, y, fit);
            }
            const Wide squared = squared_distance(window.energy + at, reference.norm, fit.largest, window.columns - x);
            const Wide rank = task.rule.factor * squared + reference.penalty;
            float* const value = task.values + y * task.lanes + x;
            int32_t* const mark = task.which + y * task.lanes + x;
            const WideInts better = rank < load<kWide>(value);
            store<kWide, float>(value, better ? rank : load<kWide>(value));
            store<kWide, int32_t>(mark, better ? fit.which : load<kWide>(mark));
        }
    }
}

void rank_transformed(const Transformed& task, const SearchWindow& window) {
    if (task.rule.cell > 1)
        return task.shape.side == 7 ? rank_transformed<7, true>(task, window) : rank_transformed<0, true>(task, window);
    switch (task.shape.side) {
        case 4: return rank_transformed<4, false>(task, window);
        case 5: return rank_transformed<5, false>(task, window);
        case 6: return rank_transformed<6, false>(task, window);
        case 7: return rank_transformed<7, false>(task, window);
        case 8: return rank_transformed<8, false>(task, window);
        default: return rank_transformed<0, false>(task, window);
    }
}

// The reference turned in place shares its noise: it is no independent sample.
void forget_near(int64_t radius, int64_t lanes, const Array<float, 1>& values) {
    const int64_t first = larger_of<int64_t>(radius - kNear, 0), last = smaller_of(radius + kNear, 2 * radius);
    for (int64_t y = first; y <= last; y++) values.part(y * lanes + first, y * lanes + last + 1).fill(INFINITY);
}

// Which transforms the candidates of a window may have; candidates that may not be shifted plainly are left out.
void allow(const MatchRule& rule, const Reference& reference, const SearchWindow& window, const Ranks& ranks) {
    const int64_t lanes = ranks.lanes;
    for (int64_t down = 0; down < rule.cell; down++)
        for (int64_t x = 0; x < lanes; x++) {
            const int64_t across = from_whole_cells(x - reference.own % lanes, rule.cell);
            ranks.allowed(down, x) = rule.moves(reference.place, down * rule.cell + across);
        }
    for (int64_t y = 0; y < window.rows; y++) {
        const int32_t* const allowed = ranks.allowed[from_whole_cells(y - reference.own / lanes, rule.cell)].data;
        for (int64_t x = 0; x < window.columns; x++)
            if (!(allowed[x] & 1)) ranks.shifted[y * lanes + x] = INFINITY;
    }
}

}  // namespace

void Matcher::match(const Reference& reference, const Array<SearchWindow, 1>& windows) {
    const Ranks& ranks = ranks_;
    const int64_t members = ranks.order.shape[0] - 1, full = rule_.n_full * ranks.per_window;
    for (int64_t w = 0; w < rule_.n_full; w++)
        rank_shifted(windows[w], shape_, reference.pixels, reference.norm, ranks.lanes, of_window(ranks.shifted, w));
    if (rule_.cell > 1) allow(rule_, reference, windows[0], ranks);
    ranks.shifted[reference.own] = 0;
    const Selected taken = take_smallest(ranks.shifted, members, guess_, ranks.few);
    guess_ = taken.threshold;
    const Values nearest = ranks.few.values.part(0, taken.count);
    const float limit = largest_up_to(nearest, threshold_of(nearest, members, guess_));
    // If enough shifted patches are nearer than the penalty, no transformed one can rank among the members.
    if (reference.penalty < limit) {
        rank_moved(reference, windows, limit);
        choose(ranks.few_moved, take_up_to(ranks.best, limit, ranks.few_moved), limit, reference.own);
        int64_t moved = 0;
        for (int64_t j = 0; j < members; j++)
            moved += (ranks.order[j] >= full) | (ranks.which[ranks.order[j]] > 0);
        if (moved * kOneIn >= members) return;
    }
    choose(ranks.few, taken.count, limit, reference.own);
    for (int64_t j = 0; j < members; j++) ranks.which[ranks.order[j]] = 0;
}

// The ranks of all candidates under all transforms.
void Matcher::rank_moved(const Reference& reference, const Array<SearchWindow, 1>& windows, float limit) const {
    const Ranks& ranks = ranks_;
    const float reach = (limit - reference.penalty) / rule_.factor * (1 + kRounding) + kRounding * reference.norm;
    for (int64_t order = 0; order < rule_.orders; order++) {
        float* to = ranks.numbers[order].data;
        for (int64_t plane = 0; plane < shape_.planes; plane++) {
            const int64_t channel = plane % shape_.channels, last = shape_.planes - shape_.channels;
            const int64_t from = order == 0 ? plane : last - plane + 2 * channel;
            to = split_reference(reference.pixels + from * shape_.plane_step, shape_.stride, shape_.side, to);
        }
    }
    std::memcpy(ranks.best.data, ranks.shifted.data, sizeof(float) * ranks.shifted.shape[0]);
    ranks.which.part(0, ranks.shifted.shape[0]).fill(0);
    for (int64_t w = 0; w < windows.shape[0]; w++) {
        const bool full = w < rule_.n_full;
        const Array<float, 1> values = of_window(ranks.best, w);
        if (!full) values.fill(INFINITY);
        rank_transformed({reference, shape_, rule_, reach, !full, ranks.lanes, ranks.numbers, ranks.rows, values.data,
                          of_window(ranks.which, w).data, ranks.allowed, reference.own / ranks.lanes},
                         windows[w]);
        if (windows[w].forgets_near) forget_near(windows[w].rows / 2, ranks.lanes, values);
    }
    if (windows.shape[0] > rule_.n_full)
        keep_smallest(ranks.best.part(rule_.n_full * ranks.per_window, ranks.best.shape[0]), rule_.n_copied);
}

// Choose the members among the candidates taken.
void Matcher::choose(const Few& few, int64_t taken, float limit, int64_t own) const {
    const int64_t members = ranks_.order.shape[0] - 1;
    for (int64_t j = smallest_of_few(few, taken, members, own, limit, ranks_.order); j <= members; j++)
        ranks_.order[j] = int32_t(own);
}

void Matcher::write(const Array<SearchWindow, 1>& windows, const Array<int32_t, 1>& positions,
                    const Array<uint8_t, 1>& chosen) const {
    const int32_t lanes = int32_t(ranks_.lanes), per_window = int32_t(ranks_.per_window);
    const int32_t stride = int32_t(shape_.stride);
    // Divide by multiplying; adding a half keeps rounding away from whole numbers.
    const double per_lane = 1.0 / lanes, per_place = 1.0 / per_window;
    for (int64_t j = 0; j < positions.shape[0]; j++) {
        const int32_t place = ranks_.order[j];
        const int32_t window = int32_t((place + 0.5) * per_place), at = place - window * per_window;
        const int32_t row = int32_t((at + 0.5) * per_lane);
        positions[j] = int32_t(windows[window].first) + row * stride + at - row * lanes;
        chosen[j] = uint8_t(ranks_.which[place]);
    }
}

}  // namespace vnlem
