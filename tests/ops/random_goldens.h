#ifndef WEIR_TESTS_OPS_RANDOM_GOLDENS_H_
#define WEIR_TESTS_OPS_RANDOM_GOLDENS_H_

#include <cstdint>
#include <vector>

// Written by make_random_goldens.py.
namespace weir {

struct RandomGolden {
  const char* op;
  const char* dtype;
  std::vector<int64_t> shape;
  uint64_t hashes[2];  // FNV-1a of the bytes of the output, in the first run and in the second
};

inline const std::vector<RandomGolden>& RandomGoldens() {
  static const auto* const goldens = new std::vector<RandomGolden>{
    {"RandomUniform", "float16", {7}, {0x3c9ea81ab8447d91u, 0x62f47bf30526fbf2u}},
    {"RandomStandardNormal", "float16", {7}, {0xa9551c978496e9bfu, 0x540eb74c7bc90c53u}},
    {"TruncatedNormal", "float16", {7}, {0x485473f145889de9u, 0xc6536e327bca6237u}},
    {"StatelessRandomUniform", "float16", {7}, {0xa4b234400b0ecc07u, 0xa4b234400b0ecc07u}},
    {"StatelessRandomUniformV2", "float16", {7}, {0x76f39eb16a402a1bu, 0x76f39eb16a402a1bu}},
    {"StatelessRandomNormal", "float16", {7}, {0x8b28cfa5bfe9866eu, 0x8b28cfa5bfe9866eu}},
    {"StatelessRandomNormalV2", "float16", {7}, {0x7958b839f1ae17bdu, 0x7958b839f1ae17bdu}},
    {"StatelessTruncatedNormal", "float16", {7}, {0xefc25f65c03bdcb3u, 0xefc25f65c03bdcb3u}},
    {"StatelessTruncatedNormalV2", "float16", {7}, {0xfc8d2d84b2b23141u, 0xfc8d2d84b2b23141u}},
    {"RandomUniform", "bfloat16", {7}, {0xdbdd829cf989e046u, 0x7f6c8a73fb8b0d22u}},
    {"RandomStandardNormal", "bfloat16", {7}, {0xfe734ba240884196u, 0xd549748969a69a24u}},
    {"TruncatedNormal", "bfloat16", {7}, {0x0bfda4fb0a7b226du, 0x54bb5538b873dd97u}},
    {"StatelessRandomUniform", "bfloat16", {7}, {0x93e7aef7e946b092u, 0x93e7aef7e946b092u}},
    {"StatelessRandomUniformV2", "bfloat16", {7}, {0x3d1e01807501e883u, 0x3d1e01807501e883u}},
    {"StatelessRandomNormal", "bfloat16", {7}, {0x265e4b20ffbeca3fu, 0x265e4b20ffbeca3fu}},
    {"StatelessRandomNormalV2", "bfloat16", {7}, {0x100cbd8ed7e95eb4u, 0x100cbd8ed7e95eb4u}},
    {"StatelessTruncatedNormal", "bfloat16", {7}, {0x8761abf2176a3ac6u, 0x8761abf2176a3ac6u}},
    {"StatelessTruncatedNormalV2", "bfloat16", {7}, {0xedf6046e7e4c60cau, 0xedf6046e7e4c60cau}},
    {"RandomUniform", "float32", {7}, {0xf6428b66e53f08bdu, 0x5e0e914c571a9b52u}},
    {"RandomStandardNormal", "float32", {7}, {0x3ba7e8c16ad55f93u, 0x2a1c54ac74ed8e16u}},
    {"TruncatedNormal", "float32", {7}, {0x67377ff0aaea808cu, 0x3bee49cee5458a7eu}},
    {"StatelessRandomUniform", "float32", {7}, {0x199dbfbab68475b3u, 0x199dbfbab68475b3u}},
    {"StatelessRandomUniformV2", "float32", {7}, {0x44bd0f40bd5e18f7u, 0x44bd0f40bd5e18f7u}},
    {"StatelessRandomNormal", "float32", {7}, {0x9de05bf9f54787f0u, 0x9de05bf9f54787f0u}},
    {"StatelessRandomNormalV2", "float32", {7}, {0x14146984c7637b74u, 0x14146984c7637b74u}},
    {"StatelessTruncatedNormal", "float32", {7}, {0x0a4d1758ed701790u, 0x0a4d1758ed701790u}},
    {"StatelessTruncatedNormalV2", "float32", {7}, {0xc54190c74385ad67u, 0xc54190c74385ad67u}},
    {"RandomUniform", "float64", {7}, {0xd6a7250c875a7ea0u, 0x89d117ba002acca7u}},
    {"RandomStandardNormal", "float64", {7}, {0xcd7011c5922018f8u, 0x770f849ff1aec1d7u}},
    {"TruncatedNormal", "float64", {7}, {0x773fd833a9220582u, 0xb16ddfa60076e947u}},
    {"StatelessRandomUniform", "float64", {7}, {0xc6ae1ab9ec905f45u, 0xc6ae1ab9ec905f45u}},
    {"StatelessRandomUniformV2", "float64", {7}, {0x35a524ecc1e2232du, 0x35a524ecc1e2232du}},
    {"StatelessRandomNormal", "float64", {7}, {0x10d53aa231b4c090u, 0x10d53aa231b4c090u}},
    {"StatelessRandomNormalV2", "float64", {7}, {0x06e537de14076559u, 0x06e537de14076559u}},
    {"StatelessTruncatedNormal", "float64", {7}, {0xc222804d7bc5e4f4u, 0xc222804d7bc5e4f4u}},
    {"StatelessTruncatedNormalV2", "float64", {7}, {0x56cbbe5c2da3f77fu, 0x56cbbe5c2da3f77fu}},
    {"RandomUniformInt", "int32", {7}, {0x3229a17a0de5a2b9u, 0xd03e579687085f1cu}},
    {"StatelessRandomUniformInt", "int32", {7}, {0xd027b273102af186u, 0xd027b273102af186u}},
    {"RandomUniformInt", "int64", {7}, {0xcf16b7b2c4300b45u, 0xf63ea65771a75892u}},
    {"StatelessRandomUniformInt", "int64", {7}, {0xf1682c11ed86d2d1u, 0xf1682c11ed86d2d1u}},
    {"StatelessRandomUniformFullInt", "int32", {7}, {0xcd18d85e84d62102u, 0xcd18d85e84d62102u}},
    {"StatelessRandomUniformFullIntV2", "int32", {7}, {0x7de5c0829991f013u, 0x7de5c0829991f013u}},
    {"StatelessRandomUniformFullInt", "int64", {7}, {0xeb0416f5a0216b65u, 0xeb0416f5a0216b65u}},
    {"StatelessRandomUniformFullIntV2", "int64", {7}, {0xf4b52c39a5ec74fau, 0xf4b52c39a5ec74fau}},
    {"StatelessRandomUniformFullInt", "uint32", {7}, {0xcd18d85e84d62102u, 0xcd18d85e84d62102u}},
    {"StatelessRandomUniformFullIntV2", "uint32", {7}, {0x7de5c0829991f013u, 0x7de5c0829991f013u}},
    {"StatelessRandomUniformFullInt", "uint64", {7}, {0xeb0416f5a0216b65u, 0xeb0416f5a0216b65u}},
    {"StatelessRandomUniformFullIntV2", "uint64", {7}, {0xf4b52c39a5ec74fau, 0xf4b52c39a5ec74fau}},
    {"RandomShuffle", "int32", {7}, {0x3a40b689fef5d512u, 0x134a99ad1042faf2u}},
    {"RandomUniform", "float16", {1003, 3}, {0xe63c7311d96d6a79u, 0x96d8a7718f6375b8u}},
    {"RandomStandardNormal", "float16", {1003, 3}, {0x03656eecf8695436u, 0x20f1d03054197a2bu}},
    {"TruncatedNormal", "float16", {1003, 3}, {0xb9237ab802e000cau, 0xfa77e1e875f8aba6u}},
    {"StatelessRandomUniform", "float16", {1003, 3}, {0x38cab1eb0b16718bu, 0x38cab1eb0b16718bu}},
    {"StatelessRandomUniformV2", "float16", {1003, 3}, {0xf514bb11b09ae16cu, 0xf514bb11b09ae16cu}},
    {"StatelessRandomNormal", "float16", {1003, 3}, {0x6eb0a249968164c9u, 0x6eb0a249968164c9u}},
    {"StatelessRandomNormalV2", "float16", {1003, 3}, {0x15f0084fb35d5af9u, 0x15f0084fb35d5af9u}},
    {"StatelessTruncatedNormal", "float16", {1003, 3}, {0xe2985f031f65b1dfu, 0xe2985f031f65b1dfu}},
    {"StatelessTruncatedNormalV2", "float16", {1003, 3}, {0xfae68d2441df40f0u, 0xfae68d2441df40f0u}},
    {"RandomUniform", "bfloat16", {1003, 3}, {0x5cc5bf2e1489a2d9u, 0x370978d5cc432589u}},
    {"RandomStandardNormal", "bfloat16", {1003, 3}, {0x5958bb720035a788u, 0x2666d4252bc3e751u}},
    {"TruncatedNormal", "bfloat16", {1003, 3}, {0xb7314fdbdf82c61fu, 0x409a9ec91187d5f8u}},
    {"StatelessRandomUniform", "bfloat16", {1003, 3}, {0x08c0b80c96c6c1ecu, 0x08c0b80c96c6c1ecu}},
    {"StatelessRandomUniformV2", "bfloat16", {1003, 3}, {0x16aa5caa3910911au, 0x16aa5caa3910911au}},
    {"StatelessRandomNormal", "bfloat16", {1003, 3}, {0x555fd6b3160e86f8u, 0x555fd6b3160e86f8u}},
    {"StatelessRandomNormalV2", "bfloat16", {1003, 3}, {0x500db2fb2a9c822cu, 0x500db2fb2a9c822cu}},
    {"StatelessTruncatedNormal", "bfloat16", {1003, 3}, {0x7ac63b759851d7e0u, 0x7ac63b759851d7e0u}},
    {"StatelessTruncatedNormalV2", "bfloat16", {1003, 3}, {0xef384efeeb912e06u, 0xef384efeeb912e06u}},
    {"RandomUniform", "float32", {1003, 3}, {0x80677384798001d0u, 0x7da205f006c57295u}},
    {"RandomStandardNormal", "float32", {1003, 3}, {0x4b23afe969a464b3u, 0x47ba166e4a97b8aeu}},
    {"TruncatedNormal", "float32", {1003, 3}, {0x8f5a97c6294d87f2u, 0xcd2c6af23d4160c7u}},
    {"StatelessRandomUniform", "float32", {1003, 3}, {0x9ad56de89dd42024u, 0x9ad56de89dd42024u}},
    {"StatelessRandomUniformV2", "float32", {1003, 3}, {0xb30b1d6fae809ad4u, 0xb30b1d6fae809ad4u}},
    {"StatelessRandomNormal", "float32", {1003, 3}, {0x25aeca0314fcc015u, 0x25aeca0314fcc015u}},
    {"StatelessRandomNormalV2", "float32", {1003, 3}, {0xd2f022bda42ab10du, 0xd2f022bda42ab10du}},
    {"StatelessTruncatedNormal", "float32", {1003, 3}, {0x9140f19814f0b0fdu, 0x9140f19814f0b0fdu}},
    {"StatelessTruncatedNormalV2", "float32", {1003, 3}, {0x44186b2fdd9568c9u, 0x44186b2fdd9568c9u}},
    {"RandomUniform", "float64", {1003, 3}, {0xd5b03c5f776c3badu, 0x437a963174a5db80u}},
    {"RandomStandardNormal", "float64", {1003, 3}, {0x3869081e8d5c938au, 0x1200e1ae70fe1146u}},
    {"TruncatedNormal", "float64", {1003, 3}, {0x362d899f05a4bfa5u, 0xbf901a377ea456bfu}},
    {"StatelessRandomUniform", "float64", {1003, 3}, {0x9f285f154869a94du, 0x9f285f154869a94du}},
    {"StatelessRandomUniformV2", "float64", {1003, 3}, {0xfa8192f1f4c33d8du, 0xfa8192f1f4c33d8du}},
    {"StatelessRandomNormal", "float64", {1003, 3}, {0x90c79a85e3b494cdu, 0x90c79a85e3b494cdu}},
    {"StatelessRandomNormalV2", "float64", {1003, 3}, {0x2010306ccbee0c45u, 0x2010306ccbee0c45u}},
    {"StatelessTruncatedNormal", "float64", {1003, 3}, {0x5ea2c544fd15152cu, 0x5ea2c544fd15152cu}},
    {"StatelessTruncatedNormalV2", "float64", {1003, 3}, {0xe64e31cd9a60bdadu, 0xe64e31cd9a60bdadu}},
    {"RandomUniformInt", "int32", {1003, 3}, {0x132c6ded31bf6adfu, 0x16ce65514e6184abu}},
    {"StatelessRandomUniformInt", "int32", {1003, 3}, {0x6e8cd88333f82824u, 0x6e8cd88333f82824u}},
    {"RandomUniformInt", "int64", {1003, 3}, {0x37b18cc2c3561e80u, 0x9db9a69de54dc814u}},
    {"StatelessRandomUniformInt", "int64", {1003, 3}, {0xa825f35b93780983u, 0xa825f35b93780983u}},
    {"StatelessRandomUniformFullInt", "int32", {1003, 3}, {0x7130dfb397b76c14u, 0x7130dfb397b76c14u}},
    {"StatelessRandomUniformFullIntV2", "int32", {1003, 3}, {0x016123788d1a7fbau, 0x016123788d1a7fbau}},
    {"StatelessRandomUniformFullInt", "int64", {1003, 3}, {0xcc048ef3f74540a6u, 0xcc048ef3f74540a6u}},
    {"StatelessRandomUniformFullIntV2", "int64", {1003, 3}, {0x6c9a340a237fb1c2u, 0x6c9a340a237fb1c2u}},
    {"StatelessRandomUniformFullInt", "uint32", {1003, 3}, {0x7130dfb397b76c14u, 0x7130dfb397b76c14u}},
    {"StatelessRandomUniformFullIntV2", "uint32", {1003, 3}, {0x016123788d1a7fbau, 0x016123788d1a7fbau}},
    {"StatelessRandomUniformFullInt", "uint64", {1003, 3}, {0xcc048ef3f74540a6u, 0xcc048ef3f74540a6u}},
    {"StatelessRandomUniformFullIntV2", "uint64", {1003, 3}, {0x6c9a340a237fb1c2u, 0x6c9a340a237fb1c2u}},
    {"RandomShuffle", "int32", {1003, 3}, {0x78ca9e15a89f9c94u, 0x05b5cb8e449a5140u}},
    {"Multinomial", "int64", {2, 9}, {0x85811fd57feda367u, 0x6caeb00134210fa6u}},
    {"StatelessMultinomial", "int64", {2, 9}, {0x6d5372520f8aefa6u, 0x6d5372520f8aefa6u}},
  };
  return *goldens;
}

}  // namespace weir

#endif  // WEIR_TESTS_OPS_RANDOM_GOLDENS_H_
