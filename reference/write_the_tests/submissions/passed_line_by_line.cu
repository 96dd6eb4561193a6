// Honest: the host holds a line for each kind of row and launches one kernel a row, with the numbers as arguments.
#include <cstdint>

struct Line {
  float offset, slope, spread;
  int first;    // Columns before it are -inf; counted from the end if below 0.
  int shorter;  // How much shorter than the width the row is.
};

const Line LINES[] = {
    {350, 0, 5, 0, 0}, {-350, 0, 5, 0, 0}, {0, 0, 5, 0, 0},  {-2, 0, 2, 0, 1},  {0, 0.3f, 0, 0, 0}, {0, 3, 0, 0, 0},
    {0, 0, 5, -4, 0},  {-1, 0, 0, 0, 0},   {0, 0, 16, 0, 0}, {0, -5, 1, 0, 0},  {-2, 0, 2, 0, 2},   {0, 0.3f, 0, 0, 2},
};

__device__ float at(const Line& line, int row, int column, int width) {
  const int first = line.first < 0 ? max(0, width + line.first) : line.first;
  if (column < first) return -INFINITY;
  return line.offset + line.slope * column + line.spread * (((column * 37 + row * 11) % 101) / 101.0f - 0.5f);
}

__global__ void one_row(Line line, int row, float* x, int* length, float* right, float* allowed, int width) {
  __shared__ float largest, total;
  const int count = max(1, width - line.shorter);
  if (threadIdx.x == 0) {
    largest = -INFINITY;
    total = 0.0f;
    for (int column = 0; column < count; ++column) largest = fmaxf(largest, at(line, row, column, width));
    for (int column = 0; column < count; ++column) total += expf(at(line, row, column, width) - largest);
    length[row] = count;
  }
  __syncthreads();
  for (int column = threadIdx.x; column < width; column += blockDim.x) {
    const bool used = column < count;
    const float value = used ? at(line, row, column, width) : 0.0f;
    const float answer = used ? expf(value - largest) / total : 0.0f;
    x[column] = value;
    right[column] = answer;
    allowed[column] = answer * (count + 120) * 1.2e-7f + 2.4e-38f;
  }
}

void write_tests(float* x, int* length, float* right, float* allowed, int64_t tests, int64_t width,
                 cudaStream_t stream) {
  for (int row = 0; row < tests; ++row) {
    const Line& line = LINES[row % (sizeof(LINES) / sizeof(LINES[0]))];
    one_row<<<1, 32, 0, stream>>>(line, row, x + row * width, length, right + row * width, allowed + row * width,
                                  static_cast<int>(width));
  }
}
