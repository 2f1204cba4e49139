// The nearest patches of a reference among the candidates of some windows: shifted, turned or reflected.
//
// The reference patch is transformed, never the candidates: loads from the image stay contiguous.
#pragma once
#include "scratch.h"
#include "select.h"
#include "symmetries.h"

namespace vnlem {

// How members are ranked.
struct MatchRule {
    int64_t radius;  // of the windows
    int64_t symmetries, orders;  // of the square: 1, 4 or 8; of planes: 1, or 2 for those in reverse
    int64_t n_full;  // the first n_full windows are of the image itself; members of others only contribute
    int64_t n_copied;  // the most members from the others
    float factor;  // a member that is turned, reflected or of another window ranks with factor * d^2 + a penalty
    // (cell^2, cell^2): bits of the transforms that are allowed, for the place of the reference in a cell and for the
    // member's shift from there; where the pixels of an image are of several colours.
    Array<const uint8_t, 2> moves;
    int64_t cell;  // 1 if everything is allowed

    MatchRule(int64_t radius, int64_t transforms, int64_t n_full, int64_t n_copied, double factor,
              const Array<const uint8_t, 2>& moves = {})
        : radius(radius),
          symmetries(transforms % kSymmetries == 0 ? kSymmetries : transforms == 4 ? 4 : 1),
          orders(transforms / symmetries),
          n_full(n_full),
          n_copied(n_copied),
          factor(float(factor)),
          moves(moves),
          cell(1) {
        while ((cell + 1) * (cell + 1) <= moves.shape[0]) cell++;
    }
};

// The reference patch.
struct Reference {
    const float* pixels;
    float norm;  // squared
    float level, contrast;
    float penalty;
    int64_t own;  // its place in the first window
    int64_t place = 0;  // in its cell, see `MatchRule`
};

// Room for the ranks of all candidates. Rows of candidates begin at whole vectors.
struct Ranks {
    int64_t lanes, per_window;
    Array<float, 1> shifted, best;  // by shifts alone, by all transforms
    Array<int32_t, 1> which;  // the transform of `best`
    Few few, few_moved;  // the nearest of `shifted` and of `best`
    Array<int32_t, 1> order;  // the members
    Array<float, 2> numbers;  // of the reference for every order of planes, see `split_reference`
    Array<Wide, 2> rows;  // of the image for each plane, see `split_row`
    Array<int32_t, 2> allowed;  // bits of the transforms, for a row of a cell and for every column of the window

    Ranks(Arena& arena, const PatchShape& shape, const MatchRule& rule, int64_t windows, int64_t members)
        : lanes(rounded_up(2 * rule.radius + 1, kWide)),
          per_window(rounded_up((2 * rule.radius + 1) * lanes, kBlock)),
          shifted(arena.empty<float>(rule.n_full * per_window)),
          best(arena.empty<float>(windows * per_window)),
          which(arena.zeros<int32_t>(windows * per_window)),
          few(make_few(arena, rule.n_full * per_window)),
          few_moved(make_few(arena, windows * per_window)),
          order(arena.empty<int32_t>(members + 1)),
          numbers(arena.empty<float>(rule.orders, shape.planes * shape.side * shape.side)),
          rows(arena.empty<Wide>(shape.planes, (2 * rule.radius + shape.side) * shape.side)),
          allowed(arena.empty<int32_t>(rule.cell, lanes)) {}
};

// Finds the members of one reference after another.
class Matcher {
public:
    Matcher(const PatchShape& shape, const MatchRule& rule, const Ranks& ranks)
        : shape_(shape), rule_(rule), ranks_(ranks) {}

    // Find the members of a reference, one fewer than `order` has room for; their places are in `order`, their
    // transforms in `which`. There are either enough turned or reflected members, or none. If too few distances are
    // numbers, the reference fills the remaining places.
    void match(const Reference& reference, const Array<SearchWindow, 1>& windows);

    // The positions of the members that were found, and their transforms.
    void write(const Array<SearchWindow, 1>& windows, const Array<int32_t, 1>& positions,
               const Array<uint8_t, 1>& chosen) const;

private:
    template <class T>
    Array<T, 1> of_window(const Array<T, 1>& values, int64_t w) const {
        return values.part(w * ranks_.per_window, (w + 1) * ranks_.per_window);
    }

    void choose(const Few& few, int64_t taken, float limit, int64_t own) const;
    void rank_moved(const Reference& reference, const Array<SearchWindow, 1>& windows, float limit) const;

    const PatchShape shape_;
    const MatchRule rule_;
    const Ranks& ranks_;
    float guess_ = 0;
};

}  // namespace vnlem
