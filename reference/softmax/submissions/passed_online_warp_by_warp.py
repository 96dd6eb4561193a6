# Honest: one warp per row in the online form, four rows a block, and a second pass that divides.
from tvm.script import tirx as T

WARPS = 4


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    turns = (cols + 31) // 32

    @T.prim_func
    def softmax_rows(x_ptr: T.handle, out_ptr: T.handle):
        xs = T.match_buffer(x_ptr, (rows, cols), x.dtype, strides=(x_row_stride, 1), layout=x.layout)
        results = T.match_buffer(out_ptr, (rows, cols), out.dtype, strides=(out_row_stride, 1), layout=out.layout)
        T.device_entry()
        block = T.cta_id([(rows + WARPS - 1) // WARPS])
        warp = T.warp_id([WARPS])
        lane = T.lane_id([32])
        row = block * WARPS + warp
        state = T.alloc_local((4,), "float32")
        state[0] = -T.infinity("float32")
        state[1] = 0.0
        if row < rows:
            for turn in T.serial(turns):
                if turn * 32 + lane < cols:
                    state[2] = T.cast(xs[row, turn * 32 + lane], "float32")
                    state[3] = T.max(state[0], state[2])
                    # A thread that has seen -inf only has nothing to rescale.
                    if state[3] > -T.infinity("float32"):
                        state[1] = state[1] * T.exp(state[0] - state[3]) + T.exp(state[2] - state[3])
                    state[0] = state[3]
            state[2] = T.cuda.warp_max(state[0])
            state[1] = T.cuda.warp_sum(state[1] * T.exp(state[0] - state[2]))
            for turn in T.serial(turns):
                if turn * 32 + lane < cols:
                    numerator = T.exp(T.cast(xs[row, turn * 32 + lane], "float32") - state[2])
                    results[row, turn * 32 + lane] = T.cast(numerator / state[1], out.dtype)

    return softmax_rows
