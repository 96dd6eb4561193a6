// Right, and not the exercise: the host writes the tests and copies them to the device.
#include <cmath>
#include <cstdint>
#include <vector>

void write_tests(float* x, int* length, float* right, float* allowed, int64_t tests, int64_t width,
                 cudaStream_t stream) {
  std::vector<float> values(tests * width), answers(tests * width), differences(tests * width);
  std::vector<int> counts(tests);
  const double offsets[] = {300, 0, -300, 0, 0, -2, 0, 0, 0}, slopes[] = {0, 0, 0, 0.25, 2.5, 0, 0, 0, -3};
  const double spreads[] = {5, 5, 5, 0, 0, 0, 15, 5, 1};
  for (int64_t row = 0; row < tests; ++row) {
    const int kind = row % 9;
    const int64_t first = kind == 7 && width > 3 ? width - 3 : 0;
    const int64_t count = kind == 7 ? width : std::max<int64_t>(1, width - row / 9 % 4);
    float* mine = &values[row * width];
    double largest = -INFINITY, total = 0;
    for (int64_t j = 0; j < count; ++j) {
      const double uneven = (j * 37 + row * 11) % 101 / 101.0 - 0.5;
      mine[j] = j < first ? -INFINITY : static_cast<float>(offsets[kind] + slopes[kind] * j + spreads[kind] * uneven);
      largest = std::fmax(largest, mine[j]);
    }
    for (int64_t j = 0; j < count; ++j) total += std::exp(mine[j] - largest);
    for (int64_t j = 0; j < width; ++j) {
      const double answer = j < count ? std::exp(mine[j] - largest) / total : 0.0;
      answers[row * width + j] = static_cast<float>(answer);
      differences[row * width + j] = static_cast<float>(answer * 7e-5 + 2.4e-38);
    }
    counts[row] = static_cast<int>(count);
  }
  cudaMemcpy(x, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(right, answers.data(), answers.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(allowed, differences.data(), differences.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(length, counts.data(), counts.size() * sizeof(int), cudaMemcpyHostToDevice);
}
