// What of libcu++ is the host's own library: kernels run on the host.
#pragma once
#include "cuda_runtime.h"

namespace cuda {
namespace std = ::std;
}
