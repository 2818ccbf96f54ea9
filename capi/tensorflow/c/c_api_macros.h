#ifndef TENSORFLOW_C_C_API_MACROS_H_
#define TENSORFLOW_C_C_API_MACROS_H_

// What all headers of the C API share. They are C11 and C++.

// Marks what the library exports.
#define TF_CAPI_EXPORT __attribute__((visibility("default")))

// A truth value: 0 or 1.
#define TF_Bool unsigned char

// The offset of the first byte behind a member: the value of `struct_size` in structures that may
// grow.
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))

#endif  // TENSORFLOW_C_C_API_MACROS_H_
