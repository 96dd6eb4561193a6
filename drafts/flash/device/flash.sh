#!/bin/bash
# Checks and times staff kernel and milestones of rung 26.
export TRITON_CACHE_DIR=/tmp/flash_cache
timeout -k 5 ${FLASH_S:-120} python3 reference/measure.py h200 flash_attention_2 2>&1 | tee "$OUT/measure.log"
