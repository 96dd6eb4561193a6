// The textbook kernel: blocks of 32 x 32 threads, one element each, and a shared tile with one column of padding.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <stdint.h>

#define TILE_WIDTH 32

template <typename T>
__global__ void transposeKernel(const T* x, T* out, int64_t height, int64_t width, int64_t xPitch, int64_t outPitch) {
  __shared__ T tile_s[TILE_WIDTH][TILE_WIDTH + 1];

  int bx = blockIdx.x, by = blockIdx.y;
  int tx = threadIdx.x, ty = threadIdx.y;

  // Boundary condition on the way in. by may be small while the matrix is tall, so that the grid strides downwards.
  for (int64_t tileRow = by; tileRow * TILE_WIDTH < height; tileRow += gridDim.y) {
    int64_t row = tileRow * TILE_WIDTH + ty;
    int64_t col = (int64_t)bx * TILE_WIDTH + tx;
    if (row < height && col < width) {
      tile_s[ty][tx] = x[row * xPitch + col];
    }
    __syncthreads();

    // On the way out the roles of the block indices are swapped, and those of the thread indices are not.
    int64_t outRow = (int64_t)bx * TILE_WIDTH + ty;
    int64_t outCol = tileRow * TILE_WIDTH + tx;
    if (outRow < width && outCol < height) {
      out[outRow * outPitch + outCol] = tile_s[tx][ty];
    }
    __syncthreads();
  }
}

template <typename T>
void transpose(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  int64_t tilesDown = (rows + TILE_WIDTH - 1) / TILE_WIDTH;
  if (tilesDown > 65535) tilesDown = 65535;
  dim3 dimBlock(TILE_WIDTH, TILE_WIDTH, 1);
  dim3 dimGrid((unsigned)((cols + TILE_WIDTH - 1) / TILE_WIDTH), (unsigned)tilesDown, 1);
  transposeKernel<T><<<dimGrid, dimBlock, 0, stream>>>(x, out, rows, cols, x_row_stride, out_row_stride);
}
