#pragma once

/// One set of names for the runtimes of CUDA and HIP: gpuXxx is cudaXxx or hipXxx.
/// Names that are here mean the same in both; what only one has stays where it is needed.

#if COMMTUNE_WITH_HIP
#include <hip/hip_runtime_api.h>
#define COMMTUNE_GPU_NAME(name) hip##name
#else
#include <cuda_runtime_api.h>
#define COMMTUNE_GPU_NAME(name) cuda##name
#endif

// Types.
using gpuError_t = COMMTUNE_GPU_NAME(Error_t);
using gpuStream_t = COMMTUNE_GPU_NAME(Stream_t);
using gpuEvent_t = COMMTUNE_GPU_NAME(Event_t);
using gpuGraph_t = COMMTUNE_GPU_NAME(Graph_t);
using gpuGraphExec_t = COMMTUNE_GPU_NAME(GraphExec_t);
using gpuIpcMemHandle_t = COMMTUNE_GPU_NAME(IpcMemHandle_t);
#if COMMTUNE_WITH_HIP
using gpuDeviceProp = hipDeviceProp_t;
#else
using gpuDeviceProp = cudaDeviceProp;
#endif

// Errors.
#define gpuSuccess COMMTUNE_GPU_NAME(Success)
#define gpuErrorNotReady COMMTUNE_GPU_NAME(ErrorNotReady)
#define gpuErrorInvalidValue COMMTUNE_GPU_NAME(ErrorInvalidValue)
#define gpuGetErrorName COMMTUNE_GPU_NAME(GetErrorName)
#define gpuGetErrorString COMMTUNE_GPU_NAME(GetErrorString)
#define gpuGetLastError COMMTUNE_GPU_NAME(GetLastError)

// Devices.
#define gpuGetDeviceCount COMMTUNE_GPU_NAME(GetDeviceCount)
#define gpuSetDevice COMMTUNE_GPU_NAME(SetDevice)
#define gpuDeviceGetPCIBusId COMMTUNE_GPU_NAME(DeviceGetPCIBusId)
#define gpuGetDeviceProperties COMMTUNE_GPU_NAME(GetDeviceProperties)
#define gpuDriverGetVersion COMMTUNE_GPU_NAME(DriverGetVersion)
#define gpuRuntimeGetVersion COMMTUNE_GPU_NAME(RuntimeGetVersion)

// Memory.
#define gpuMalloc COMMTUNE_GPU_NAME(Malloc)
#define gpuFree COMMTUNE_GPU_NAME(Free)
#define gpuMemcpyAsync COMMTUNE_GPU_NAME(MemcpyAsync)
#define gpuMemsetAsync COMMTUNE_GPU_NAME(MemsetAsync)
#define gpuMemcpyHostToDevice COMMTUNE_GPU_NAME(MemcpyHostToDevice)
#define gpuMemcpyDeviceToHost COMMTUNE_GPU_NAME(MemcpyDeviceToHost)
#define gpuMemcpyDeviceToDevice COMMTUNE_GPU_NAME(MemcpyDeviceToDevice)
#define gpuMemcpyDefault COMMTUNE_GPU_NAME(MemcpyDefault)
#if COMMTUNE_WITH_HIP
#define gpuHostAlloc hipHostMalloc
#define gpuHostAllocDefault hipHostMallocDefault
#define gpuFreeHost hipHostFree
#else
#define gpuHostAlloc cudaHostAlloc
#define gpuHostAllocDefault cudaHostAllocDefault
#define gpuFreeHost cudaFreeHost
#endif

// Memory of other processes.
#define gpuIpcGetMemHandle COMMTUNE_GPU_NAME(IpcGetMemHandle)
#define gpuIpcOpenMemHandle COMMTUNE_GPU_NAME(IpcOpenMemHandle)
#define gpuIpcCloseMemHandle COMMTUNE_GPU_NAME(IpcCloseMemHandle)
#define gpuIpcMemLazyEnablePeerAccess COMMTUNE_GPU_NAME(IpcMemLazyEnablePeerAccess)

// Streams and events.
#define gpuStreamCreateWithFlags COMMTUNE_GPU_NAME(StreamCreateWithFlags)
#define gpuStreamDestroy COMMTUNE_GPU_NAME(StreamDestroy)
#define gpuStreamSynchronize COMMTUNE_GPU_NAME(StreamSynchronize)
#define gpuStreamQuery COMMTUNE_GPU_NAME(StreamQuery)
#define gpuStreamNonBlocking COMMTUNE_GPU_NAME(StreamNonBlocking)
#define gpuEventCreate COMMTUNE_GPU_NAME(EventCreate)
#define gpuEventDestroy COMMTUNE_GPU_NAME(EventDestroy)
#define gpuEventRecord COMMTUNE_GPU_NAME(EventRecord)
#define gpuEventSynchronize COMMTUNE_GPU_NAME(EventSynchronize)
#define gpuEventElapsedTime COMMTUNE_GPU_NAME(EventElapsedTime)

// Graphs.
#define gpuStreamBeginCapture COMMTUNE_GPU_NAME(StreamBeginCapture)
#define gpuStreamEndCapture COMMTUNE_GPU_NAME(StreamEndCapture)
#define gpuStreamCaptureModeThreadLocal COMMTUNE_GPU_NAME(StreamCaptureModeThreadLocal)
// GraphInstantiate itself takes other parameters in each.
#define gpuGraphInstantiateWithFlags COMMTUNE_GPU_NAME(GraphInstantiateWithFlags)
#define gpuGraphUpload COMMTUNE_GPU_NAME(GraphUpload)
#define gpuGraphLaunch COMMTUNE_GPU_NAME(GraphLaunch)
#define gpuGraphDestroy COMMTUNE_GPU_NAME(GraphDestroy)
#define gpuGraphExecDestroy COMMTUNE_GPU_NAME(GraphExecDestroy)

namespace commtune {

/// Throws Error with place, expression and the runtime's own words.
[[noreturn]] void fail_gpu(gpuError_t code, const char* expression, const char* file, int line);

inline void check_gpu(gpuError_t code, const char* expression, const char* file, int line) {
  if (code != gpuSuccess) fail_gpu(code, expression, file, line);
}

}  // namespace commtune

#define COMMTUNE_GPU_CALL(call) ::commtune::check_gpu((call), #call, __FILE__, __LINE__)
