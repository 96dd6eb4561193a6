#!/bin/bash
# Rungs 5, 14 and 21: candidates of the staff kernels beside copies and cuBLAS.
for part in hist scan gemm epilogue; do timeout -k 5 ${PART_S:-60} python3 var/device/scan_bench.py $part 2>&1 | tee -a $OUT/scan.log; mv $OUT/scan.json $OUT/$part.json 2>/dev/null; done
true
