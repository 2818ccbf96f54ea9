// What an op library made for TensorFlow's own library needs: symbols of C++.
namespace tensorflow {
class OpKernel {
 public:
  ~OpKernel();
};
}  // namespace tensorflow

[[gnu::visibility("default")]] void MakeKernel() { const tensorflow::OpKernel kernel; }
