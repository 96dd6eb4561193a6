// Tests of a softmax, the staff's: ten patterns of rows, in full length, one shorter, then in other lengths.
//
// Every row is written by a block of its own, with the softmax as float32 gives it. An answer may be off by twice what an
// honest one can be: relative to itself, by the sum of as many numbers as the row has, and by the rounding of x - m.
#include <cstdint>

constexpr int THREADS = 128;
constexpr int PATTERNS = 10;
constexpr float EPS = 1.1920929e-7f;
constexpr float TINY = 2.3509887e-38f;  // Hardware may flush what is smaller to zero.

__device__ float element(int pattern, int test, int column, int width) {
  // Neighbours differ, no value is one in half precision, and no two rows are alike.
  const float uneven = (test * 31 + column * 17) % 127 * 0.0631f - 4.0f;
  switch (pattern) {
    case 0: return uneven + 300.0f;
    case 2: return uneven - 300.0f;
    case 3: return column * 0.25f;
    case 4: return column * 2.0f;
    case 5: return column == test % width ? -500.0f : uneven;
    case 6: return 4 * column < 3 * width ? -INFINITY : uneven;
    case 7: return -3.3f;
    case 8: return uneven - 2.0f;
    case 9: return uneven * 5.0f;
    default: return uneven;
  }
}

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// One value of every thread brought together; all of them get the result.
template <typename Combine>
__device__ float over_block(float value, Combine combine) {
  __shared__ float of_threads[THREADS];
  __syncthreads();
  of_threads[threadIdx.x] = value;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) of_threads[threadIdx.x] = combine(of_threads[threadIdx.x], of_threads[threadIdx.x + step]);
    __syncthreads();
  }
  return of_threads[0];
}

__global__ void write_row(float* x, int* length, float* right, float* allowed, int width) {
  const int test = blockIdx.x, pattern = test % PATTERNS, turn = test / PATTERNS;
  int count = turn < 2 ? width - turn : width - turn * 13 % width;
  count = max(count, 1);
  // Most of the row of -inf is -inf: something finite has to be left.
  if (pattern == 6) count = width;
  float largest = -INFINITY;
  for (int column = threadIdx.x; column < count; column += THREADS) {
    largest = fmaxf(largest, element(pattern, test, column, width));
  }
  largest = over_block(largest, Larger());
  float total = 0.0f;
  for (int column = threadIdx.x; column < count; column += THREADS) {
    total += expf(element(pattern, test, column, width) - largest);
  }
  total = over_block(total, Plus());
  for (int column = threadIdx.x; column < width; column += THREADS) {
    const int64_t place = static_cast<int64_t>(test) * width + column;
    const float value = column < count ? element(pattern, test, column, width) : 0.0f;
    const float answer = column < count ? expf(value - largest) / total : 0.0f;
    const float below = column < count && value > -INFINITY ? largest - value : 0.0f;
    x[place] = value;
    right[place] = answer;
    allowed[place] = answer * (count + below + 8.0f) * EPS + TINY;
  }
  if (threadIdx.x == 0) length[test] = count;
}

void write_tests(float* x, int* length, float* right, float* allowed, int64_t tests, int64_t width,
                 cudaStream_t stream) {
  write_row<<<static_cast<unsigned>(tests), THREADS, 0, stream>>>(x, length, right, allowed, static_cast<int>(width));
}
