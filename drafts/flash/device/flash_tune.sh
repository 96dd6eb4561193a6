#!/bin/bash
# Check and time variants of FlashAttention kernels. TOTAL seconds.
export TOTAL=${TOTAL:-145} TRITON_CACHE_DIR=/tmp/flash_cache
cd var/device/flash && timeout -k 5 $((TOTAL + 5)) python3 tune.py all
