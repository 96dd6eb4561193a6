// Honest: a thread for each row, in double precision, with two rows of each kind one after the other.
#include <cstdint>

struct Kind {
  double offset, slope, spread, hidden;  // `hidden`: the part of the row that is -inf.
  int shorter;
};

__constant__ Kind KINDS[] = {
    {250, 0, 4, 0, 0}, {0, 0, 4, 0, 0},     {-250, 0, 4, 0, 0}, {0, 0.25, 0, 0, 0}, {0, 2.5, 0, 0, 0},  {0, 0, 4, 0.8, 0},
    {-2, 0, 0, 0, 0},  {0, 0, 14, 0, 0},    {-1, 0, 2, 0, 1},   {0, -3, 1, 0, 0},   {-1, 0, 2, 0, 3},   {0, 0.25, 0, 0, 1},
};
constexpr int COUNT = sizeof(KINDS) / sizeof(Kind);

__device__ double value_at(const Kind& kind, int row, int column, int width) {
  if (column < kind.hidden * width) return -INFINITY;
  const double turns = (column + 3 * row) * 0.6180339887;
  return kind.offset + kind.slope * column + kind.spread * (turns - floor(turns) - 0.5);
}

__global__ void fill(float* x, int* length, float* right, float* allowed, int rows, int width) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const Kind kind = KINDS[row / 2 % COUNT];
  const int n = width - kind.shorter > 0 ? width - kind.shorter : 1;
  double m = -INFINITY, s = 0;
  // Once as float, which is what is asked.
  for (int j = 0; j < n; ++j) m = fmax(m, (double)(float)value_at(kind, row, j, width));
  for (int j = 0; j < n; ++j) s += exp((float)value_at(kind, row, j, width) - m);
  for (int j = 0; j < width; ++j) {
    const int64_t at = (int64_t)row * width + j;
    const float v = j < n ? (float)value_at(kind, row, j, width) : 0.0f;
    const double y = j < n ? exp(v - m) / s : 0.0;
    x[at] = v;
    right[at] = (float)y;
    allowed[at] = (float)(y * 7e-5 + 2.4e-38);
  }
  length[row] = n;
}

void write_tests(float* x, int* length, float* right, float* allowed, int64_t tests, int64_t width, cudaStream_t stream) {
  fill<<<(int)(tests + 63) / 64, 64, 0, stream>>>(x, length, right, allowed, (int)tests, (int)width);
}
