// Which images of a set look most like a patch, and where: the nearest of many feature vectors, image by image.
// Counterpart of the tree in vnlem.neighbours.alike. A thread for each patch; a block looks at one image.
// Macros: FEATURES, THREADS, TILE (places in shared memory at a time).

struct Places {
    const float* vectors;   // (n_queries, FEATURES)
    const float* places;    // (all places, FEATURES), image after image
    const int* firsts;      // (images + 1): where the places of an image begin
    float* nearest;         // (n_queries, images): squared distance of the nearest place
    int* where;             // (n_queries, images): the index of that place
    const float* limits;    // (n_queries, n_limits), ascending
    int* counts;            // (n_queries, n_limits): places nearer than a limit, but not nearer than the one before
    int n_queries, n_images, n_limits;
};

// work(place, squared distance) for all places of the block's image.
template <typename F>
__device__ __forceinline__ void for_places(const Places& p, const float (&own)[FEATURES], float* tile, F work) {
    const int first = p.firsts[blockIdx.y], last = p.firsts[blockIdx.y + 1];
    for (int begin = first; begin < last; begin += TILE) {
        const int count = min(TILE, last - begin);
        __syncthreads();
        for (int i = threadIdx.x; i < count * FEATURES; i += THREADS)
            tile[i] = p.places[(long long)begin * FEATURES + i];
        __syncthreads();
        for (int i = 0; i < count; ++i) {
            float squared = 0.0f;
#pragma unroll
            for (int f = 0; f < FEATURES; ++f) {
                const float d = own[f] - tile[i * FEATURES + f];
                squared = fmaf(d, d, squared);
            }
            work(begin + i, squared);
        }
    }
}

__device__ __forceinline__ void load_query(const Places& p, int query, float (&own)[FEATURES]) {
#pragma unroll
    for (int f = 0; f < FEATURES; ++f) own[f] = p.vectors[(long long)min(query, p.n_queries - 1) * FEATURES + f];
}

// The nearest place of each image.
extern "C" __global__ void __launch_bounds__(THREADS) nearest_places(const Places p) {
    __shared__ float tile[TILE * FEATURES];
    const int query = blockIdx.x * THREADS + threadIdx.x;
    float own[FEATURES];
    load_query(p, query, own);
    float least = __uint_as_float(INFINITY_BITS);
    int at = 0;
    for_places(p, own, tile, [&](int place, float squared) {
        if (squared < least) {
            least = squared;
            at = place;
        }
    });
    if (query >= p.n_queries) return;
    p.nearest[(long long)query * p.n_images + blockIdx.y] = least;
    p.where[(long long)query * p.n_images + blockIdx.y] = at;
}

// How many places lie between the limits of each patch.
extern "C" __global__ void __launch_bounds__(THREADS) count_places(const Places p) {
    __shared__ float tile[TILE * FEATURES];
    const int query = blockIdx.x * THREADS + threadIdx.x;
    float own[FEATURES];
    load_query(p, query, own);
    const float* limits = p.limits + (long long)min(query, p.n_queries - 1) * p.n_limits;
    int* counts = p.counts + (long long)query * p.n_limits;
    const float largest = query < p.n_queries ? limits[p.n_limits - 1] : 0.0f;
    for_places(p, own, tile, [&](int, float squared) {
        if (squared >= largest) return;
        int at = 0;
        while (squared >= limits[at]) ++at;
        atomicAdd(counts + at, 1);
    });
}
