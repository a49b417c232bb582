// The program graph between its proto form (ir.proto) and core values. No field is lost in either direction; what a
// newer front end may add without a core counterpart (an unknown literal or attribute kind) reads as "nothing".
#pragma once

#include "daemon/kernels/program.h"
#include "kernelwright/v1/ir.pb.h"

namespace kernelwright::worker {

v1::SourceSpan ToProto(const SourceSpan& span);
v1::TensorType ToProto(const TensorType& type);
v1::PallasCall ToProto(const PallasCall& call);
v1::Program ToProto(const Program& program);

SourceSpan FromProto(const v1::SourceSpan& proto);
TensorType FromProto(const v1::TensorType& proto);
PallasCall FromProto(const v1::PallasCall& proto);
Program FromProto(const v1::Program& proto);

}  // namespace kernelwright::worker
