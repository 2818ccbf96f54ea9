# How Bazel builds each library, written by tools/cmake_sources.sh.

weir_library(weir_core_tensor
  SOURCES
    core/tensor/allocator.cc
    core/tensor/buffer.cc
    core/tensor/cancellation.cc
    core/tensor/convert.cc
    core/tensor/dtype.cc
    core/tensor/exception.cc
    core/tensor/heap.cc
    core/tensor/memory_quota.cc
    core/tensor/repeated_tensor.cc
    core/tensor/shape.cc
    core/tensor/status.cc
    core/tensor/system_memory.cc
    core/tensor/tensor.cc
    core/tensor/tensor_format.cc
    core/tensor/variant.cc
  PRECOMPILED library)

weir_library(weir_core_text_proto
  SOURCES core/io/text_proto.cc
  PRECOMPILED library)

weir_protos(weir_proto_graph_proto
  PROTOS
    proto/attr_value.proto
    proto/full_type.proto
    proto/function.proto
    proto/graph.proto
    proto/graph_debug_info.proto
    proto/kernel_def.proto
    proto/node_def.proto
    proto/op_def.proto
    proto/resource_handle.proto
    proto/tensor.proto
    proto/tensor_shape.proto
    proto/types.proto
    proto/versions.proto)

weir_protos(weir_proto_bundle_proto
  PROTOS
    proto/checkpoint_state.proto
    proto/saved_tensor_slice.proto
    proto/tensor_bundle.proto
    proto/tensor_slice.proto
    proto/trackable_object_graph.proto
  NEEDS weir_proto_graph_proto)

weir_protos(weir_proto_event_proto
  PROTOS proto/event.proto proto/histogram.proto proto/summary.proto
  NEEDS weir_proto_graph_proto)

weir_protos(weir_proto_example_proto
  PROTOS proto/example.proto proto/feature.proto)

weir_protos(weir_proto_meta_graph_proto
  PROTOS
    proto/control_flow.proto
    proto/error_codes.proto
    proto/fingerprint.proto
    proto/meta_graph.proto
    proto/queue_runner.proto
    proto/saved_model.proto
    proto/saved_object_graph.proto
    proto/saver.proto
    proto/struct.proto
    proto/variable.proto
  NEEDS weir_proto_graph_proto weir_proto_bundle_proto)

weir_protos(weir_proto_step_stats_proto
  PROTOS
    proto/allocation_description.proto
    proto/cost_graph.proto
    proto/device_attributes.proto
    proto/log_memory.proto
    proto/step_stats.proto
    proto/tensor_description.proto
  NEEDS weir_proto_graph_proto)

weir_header(weir/proto.h
  SOURCE proto/proto.h)

weir_header(weir/weir.h
  SOURCE session/weir.h)

weir_library(weir_core_graph
  SOURCES
    core/graph/attr.cc
    core/graph/attr_spec.cc
    core/graph/closest_names.cc
    core/graph/device_name.cc
    core/graph/graph.cc
    core/graph/name_index.cc
    core/graph/node_builder.cc
    core/graph/op.cc
    core/graph/op_traits.cc
    core/graph/scope.cc
    core/graph/shape_context.cc
    core/graph/signature.cc
    core/graph/unknown_op.cc
  PRECOMPILED library)

weir_library(weir_core_file
  SOURCES
    core/io/crc32c.cc
    core/io/file.cc
    core/io/file_posix.cc
    core/io/memory_folder.cc
    core/io/record_frame.cc
  PRECOMPILED library)

weir_library(weir_core_proto_file
  SOURCES core/io/proto_file.cc
  PRECOMPILED library)

weir_library(weir_core_graph_io
  NEEDS weir_proto_graph_proto
  SOURCES
    core/import/attrs.cc
    core/import/connector.cc
    core/import/definitions.cc
    core/import/edges.cc
    core/import/function_body.cc
    core/import/graph_import.cc
    core/import/nodes.cc
    core/import/order.cc
    core/import/transaction.cc
    core/import/unknown_parts.cc
    core/import/versions.cc
    core/io/attr_io.cc
    core/io/function_library.cc
    core/io/graph_file.cc
    core/io/graph_io.cc
    core/io/tensor_io.cc
  PRECOMPILED library)

weir_library(weir_core_runtime
  SOURCES
    core/runtime/device.cc
    core/runtime/function.cc
    core/runtime/kernel.cc
    core/runtime/rendezvous.cc
    core/runtime/resource.cc
    core/runtime/thread_pool.cc
  PRECOMPILED library)

weir_library(weir_core_tensor_slice
  SOURCES core/io/tensor_slice.cc
  PRECOMPILED library)

weir_protos(weir_proto_uniform_quant_ops_attr_proto
  PROTOS proto/uniform_quant_ops_attr.proto)

weir_library(weir_ops_rules
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_uniform_quant_ops_attr_proto
  SOURCES
    ops/array/array_concat.cc
    ops/array/array_constant.cc
    ops/array/array_diag.cc
    ops/array/array_gather.cc
    ops/array/array_identity.cc
    ops/array/array_layout.cc
    ops/array/array_search.cc
    ops/array/array_shape.cc
    ops/array/array_slicing.cc
    ops/array/array_space.cc
    ops/array/inplace.cc
    ops/audio/audio.cc
    ops/containers/barrier.cc
    ops/containers/batch.cc
    ops/containers/composite_variant.cc
    ops/containers/data_flow.cc
    ops/containers/functional.cc
    ops/containers/optional.cc
    ops/containers/queue.cc
    ops/containers/session_tensor.cc
    ops/containers/stack.cc
    ops/containers/staging.cc
    ops/containers/table.cc
    ops/containers/tensor_array.cc
    ops/containers/tensor_list.cc
    ops/containers/tensor_map.cc
    ops/data/dataset.cc
    ops/data/dataset_arrange.cc
    ops/data/dataset_build.cc
    ops/data/dataset_files.cc
    ops/data/dataset_functions.cc
    ops/data/dataset_groups.cc
    ops/data/dataset_hints.cc
    ops/data/dataset_sources.cc
    ops/data/dataset_transforms.cc
    ops/data/dataset_values.cc
    ops/data/io.cc
    ops/data/iterator.cc
    ops/data/iterators.cc
    ops/data/parse_example.cc
    ops/data/parsing.cc
    ops/data/reader.cc
    ops/data/remap.cc
    ops/data/summary.cc
    ops/data/summary_writer.cc
    ops/framework/backprop_nodes.cc
    ops/framework/cond.cc
    ops/framework/control_flow.cc
    ops/framework/device_setter.cc
    ops/framework/flow_context.cc
    ops/framework/flow_proto.cc
    ops/framework/function.cc
    ops/framework/function_loop.cc
    ops/framework/gradient_loop.cc
    ops/framework/gradient_loops.cc
    ops/framework/gradient_rule.cc
    ops/framework/gradient_util.cc
    ops/framework/gradients.cc
    ops/framework/initializers.cc
    ops/framework/mirrored_variable.cc
    ops/framework/partitioned_variable.cc
    ops/framework/partitioner.cc
    ops/framework/print.cc
    ops/framework/process.cc
    ops/framework/recovered_flow.cc
    ops/framework/send_receive.cc
    ops/framework/state.cc
    ops/framework/variable.cc
    ops/framework/variable_guard.cc
    ops/framework/variable_proto.cc
    ops/framework/variable_scope.cc
    ops/framework/variable_writes.cc
    ops/framework/variables.cc
    ops/framework/while_loop.cc
    ops/image/image_boxes.cc
    ops/image/image_codec.cc
    ops/image/image_color.cc
    ops/image/image_internal.cc
    ops/image/image_patches.cc
    ops/image/image_pool.cc
    ops/image/image_resize.cc
    ops/image/image_sampling.cc
    ops/layers/broadcast_weights.cc
    ops/layers/layers.cc
    ops/layers/layers_conv.cc
    ops/layers/layers_dense.cc
    ops/layers/layers_norm.cc
    ops/layers/layers_pool.cc
    ops/layers/losses.cc
    ops/layers/metrics_at_k.cc
    ops/layers/metrics_classes.cc
    ops/layers/metrics_counts.cc
    ops/layers/metrics_mean.cc
    ops/layers/metrics_thresholds.cc
    ops/layers/module.cc
    ops/lib/array_internal.cc
    ops/lib/boolean_mask.cc
    ops/lib/common_shape.cc
    ops/lib/literal.cc
    ops/lib/math_internal.cc
    ops/lib/op_costs.cc
    ops/lib/ranked.cc
    ops/lib/shape_values.cc
    ops/lib/strided_slice.cc
    ops/lib/window.cc
    ops/linalg/einsum.cc
    ops/linalg/fft.cc
    ops/linalg/fit.cc
    ops/linalg/linalg.cc
    ops/linalg/linalg_decompositions.cc
    ops/linalg/linalg_functions.cc
    ops/linalg/linalg_solve.cc
    ops/math/clip.cc
    ops/math/math_binary.cc
    ops/math/math_cast.cc
    ops/math/math_complex.cc
    ops/math/math_logic.cc
    ops/math/math_matmul.cc
    ops/math/math_reduction.cc
    ops/math/math_scan.cc
    ops/math/math_segment.cc
    ops/math/math_select.cc
    ops/math/math_special.cc
    ops/math/math_unary.cc
    ops/math/search.cc
    ops/nn/candidate.cc
    ops/nn/ctc.cc
    ops/nn/dynamic_rnn.cc
    ops/nn/embedding.cc
    ops/nn/global_norm.cc
    ops/nn/nn_activation.cc
    ops/nn/nn_bias.cc
    ops/nn/nn_conv.cc
    ops/nn/nn_dropout.cc
    ops/nn/nn_fused.cc
    ops/nn/nn_losses.cc
    ops/nn/nn_norm.cc
    ops/nn/nn_pad_conv.cc
    ops/nn/nn_pool.cc
    ops/nn/rnn.cc
    ops/quantize/quantize.cc
    ops/quantize/quantized.cc
    ops/quantize/quantized_fused.cc
    ops/quantize/uniform.cc
    ops/quantize/uniform_convolution.cc
    ops/random/random.cc
    ops/random/random_distributions.cc
    ops/random/random_generator.cc
    ops/registry.cc
    ops/sparse/csr.cc
    ops/sparse/csr_product.cc
    ops/sparse/ragged.cc
    ops/sparse/sets.cc
    ops/sparse/sparse.cc
    ops/sparse/sparse_count.cc
    ops/sparse/sparse_cross.cc
    ops/sparse/sparse_internal.cc
    ops/sparse/sparse_math.cc
    ops/sparse/sparse_pack.cc
    ops/sparse/sparse_reduction.cc
    ops/text/proto_fields.cc
    ops/text/string.cc
    ops/text/string_unicode.cc
    ops/train/adam.cc
    ops/train/moving_averages.cc
    ops/train/optimizer.cc
    ops/train/optimizers.cc
    ops/train/queue_runner.cc
    ops/train/saver.cc
    ops/train/schedules.cc
    ops/train/sdca.cc
    ops/train/slots.cc
    ops/train/training.cc
    ops/train/word2vec.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED graph)

weir_library(weir_core_family_index
  SOURCES core/graph/family_index.cc
  PRECOMPILED library)

weir_program(weir_ops_generate_family_index
  OUTPUT ops/generate_family_index
  LIBRARIES
    weir_ops_rules
    weir_core_graph_io
    weir_core_proto_file
    weir_core_file
    weir_core_text_proto
    weir_core_tensor_slice
    weir_proto_meta_graph_proto
    weir_proto_bundle_proto
    weir_proto_graph_proto
    weir_proto_uniform_quant_ops_attr_proto
    weir_core_family_index
    weir_core_graph
    weir_core_tensor
  FLAGS
    "-l:libprotobuf.a -l:libz.a -pthread"
    "-l:libre2.a -pthread"
    "-Wl,--start-group -l:libabsl_bad_optional_access.a -l:libabsl_bad_variant_access.a -l:libabsl_base.a -l:libabsl_city.a -l:libabsl_civil_time.a -l:libabsl_cord.a -l:libabsl_cord_internal.a -l:libabsl_cordz_functions.a -l:libabsl_cordz_handle.a -l:libabsl_cordz_info.a -l:libabsl_cordz_sample_token.a -l:libabsl_debugging_internal.a -l:libabsl_demangle_internal.a -l:libabsl_exponential_biased.a -l:libabsl_graphcycles_internal.a -l:libabsl_hash.a -l:libabsl_hashtablez_sampler.a -l:libabsl_int128.a -l:libabsl_log_severity.a -l:libabsl_low_level_hash.a -l:libabsl_malloc_internal.a -l:libabsl_raw_hash_set.a -l:libabsl_raw_logging_internal.a -l:libabsl_spinlock_wait.a -l:libabsl_stacktrace.a -l:libabsl_status.a -l:libabsl_statusor.a -l:libabsl_str_format_internal.a -l:libabsl_strerror.a -l:libabsl_strings.a -l:libabsl_strings_internal.a -l:libabsl_symbolize.a -l:libabsl_synchronization.a -l:libabsl_throw_delegate.a -l:libabsl_time.a -l:libabsl_time_zone.a -Wl,--end-group -pthread"
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_uniform_quant_ops_attr_proto
  SOURCES ops/generate_family_index.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED graph)

weir_generate(weir_ops_index_source
  OUTPUTS ops/index.cc
  PROGRAMS weir_ops_generate_family_index
  COMMAND [==["$BIN"/ops/generate_family_index > "$BIN"/ops/index.cc]==])

weir_library(weir_ops_index
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_uniform_quant_ops_attr_proto
  GENERATED ops/index.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED graph)

weir_library(weir_kernels_backend
  SOURCES kernels/lib/backend.cc kernels/lib/device_primitives.cc kernels/lib/shared_kernels.cc
  PRECOMPILED kernel)

weir_library(weir_core_sstable_writer
  SOURCES core/io/sstable_writer.cc
  OPTIONS -fno-rtti)

weir_library(weir_core_bundle
  NEEDS weir_proto_graph_proto weir_proto_bundle_proto
  SOURCES
    core/io/bundle_commit.cc
    core/io/bundle_entry.cc
    core/io/bundle_format.cc
    core/io/bundle_many.cc
    core/io/bundle_reader.cc
    core/io/bundle_stream.cc
    core/io/bundle_verify.cc
    core/io/bundle_writer.cc
    core/io/checkpoint_state.cc
    core/io/checkpoint_v1.cc
    core/io/checkpoint_v1_verify.cc
    core/io/checkpoint_v1_writer.cc
    core/io/retention.cc
    core/io/saved_slice.cc
    core/io/snappy.cc
    core/io/sstable.cc
    core/io/sstable_block.cc
  PRECOMPILED library)

weir_library(weir_core_record
  NEEDS weir_proto_graph_proto weir_proto_event_proto
  SOURCES core/io/event_writer.cc core/io/record.cc
  PRECOMPILED library)

weir_protos(weir_proto_snapshot_proto
  PROTOS proto/snapshot.proto
  NEEDS weir_proto_graph_proto)

weir_library(weir_third_party_highway
  SOURCES third_party/highway_start.cc)

weir_library(weir_kernels_json_example
  NEEDS weir_proto_example_proto
  SOURCES kernels/data/json_example.cc
  PRECOMPILED kernel)

weir_generate(weir_kernels_sobol_numbers_text
  OUTPUTS kernels/random/sobol_numbers.cc
  INPUTS kernels/random/sobol_numbers.bin
  COMMAND
    [==[(echo '#include "weir/kernels/random/sobol_numbers.h"'; echo 'static constexpr unsigned char kBytes[] = {'; od -An -v -tu1 kernels/random/sobol_numbers.bin | sed 's/  */,/g; s/^,//; s/$/,/'; echo '};'; echo 'absl::string_view weir::PackedSobolNumbers() {'; echo 'return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)}; }') > "$BIN"/kernels/random/sobol_numbers.cc]==])

weir_library(weir_kernels_sobol_numbers
  GENERATED kernels/random/sobol_numbers.cc
  PRECOMPILED kernel)

weir_library(weir_kernels_uncontracted
  SOURCES
    kernels/image/box_set.cc
    kernels/image/color_rows.cc
    kernels/image/image_rows.cc
    kernels/quantize/fake_quant_loops.cc
  OPTIONS -ffp-contract=off)

weir_library(weir_kernels_builtin
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_proto_event_proto
    weir_proto_snapshot_proto
  SOURCES
    kernels/array/column_parts.cc
    kernels/array/concat_cpu.cc
    kernels/array/diag_cpu.cc
    kernels/array/fill_cpu.cc
    kernels/array/fill_range.cc
    kernels/array/gather_cpu.cc
    kernels/array/in_top_k_cpu.cc
    kernels/array/inplace_cpu.cc
    kernels/array/pad_cpu.cc
    kernels/array/reverse_lines.cc
    kernels/array/scatter_cpu.cc
    kernels/array/scatter_nd_cpu.cc
    kernels/array/sequence_cpu.cc
    kernels/array/shape_ops.cc
    kernels/array/slice_cpu.cc
    kernels/array/space_batch_cpu.cc
    kernels/array/topk_cpu.cc
    kernels/array/transpose_cpu.cc
    kernels/array/unique_cpu.cc
    kernels/array/where_cpu.cc
    kernels/audio/fixed_fft.cc
    kernels/audio/mfcc_cpu.cc
    kernels/audio/microfrontend.cc
    kernels/audio/microfrontend_cpu.cc
    kernels/audio/spectrogram_cpu.cc
    kernels/audio/wav.cc
    kernels/audio/wav_cpu.cc
    kernels/containers/accumulator.cc
    kernels/containers/barrier.cc
    kernels/containers/batch.cc
    kernels/containers/composite_variant.cc
    kernels/containers/data_flow.cc
    kernels/containers/dense_table.cc
    kernels/containers/hash_table.cc
    kernels/containers/mutex.cc
    kernels/containers/optional.cc
    kernels/containers/queue.cc
    kernels/containers/queue_contents.cc
    kernels/containers/queue_order.cc
    kernels/containers/queue_state.cc
    kernels/containers/session_tensor.cc
    kernels/containers/sparse_accumulator.cc
    kernels/containers/stack.cc
    kernels/containers/staging.cc
    kernels/containers/staging_state.cc
    kernels/containers/stored_value_codecs.cc
    kernels/containers/stored_values.cc
    kernels/containers/table.cc
    kernels/containers/table_file.cc
    kernels/containers/tensor_array.cc
    kernels/containers/tensor_array_state.cc
    kernels/containers/tensor_list.cc
    kernels/containers/tensor_list_concat.cc
    kernels/containers/tensor_map.cc
    kernels/containers/tensor_sequence.cc
    kernels/containers/unbatch.cc
    kernels/data/byte_stream.cc
    kernels/data/captured_function.cc
    kernels/data/csv.cc
    kernels/data/dataset.cc
    kernels/data/dataset_ahead.cc
    kernels/data/dataset_batches.cc
    kernels/data/dataset_cache.cc
    kernels/data/dataset_choose.cc
    kernels/data/dataset_csv.cc
    kernels/data/dataset_examples.cc
    kernels/data/dataset_files.cc
    kernels/data/dataset_functions.cc
    kernels/data/dataset_groups.cc
    kernels/data/dataset_hints.cc
    kernels/data/dataset_index.cc
    kernels/data/dataset_iterator.cc
    kernels/data/dataset_order.cc
    kernels/data/dataset_prefetch.cc
    kernels/data/dataset_random.cc
    kernels/data/dataset_rebatch.cc
    kernels/data/dataset_save.cc
    kernels/data/dataset_select.cc
    kernels/data/dataset_shuffle.cc
    kernels/data/dataset_snapshot.cc
    kernels/data/dataset_sparse.cc
    kernels/data/dataset_sql.cc
    kernels/data/dataset_table.cc
    kernels/data/dataset_values.cc
    kernels/data/dataset_windows.cc
    kernels/data/element_files.cc
    kernels/data/example_features.cc
    kernels/data/example_reader.cc
    kernels/data/io.cc
    kernels/data/iterator_state.cc
    kernels/data/multi_device_iterator.cc
    kernels/data/parse_example.cc
    kernels/data/parsing.cc
    kernels/data/reader.cc
    kernels/data/reader_state.cc
    kernels/data/record_input.cc
    kernels/data/record_source.cc
    kernels/data/record_stream.cc
    kernels/data/remap.cc
    kernels/data/summary.cc
    kernels/data/summary_media.cc
    kernels/data/summary_writer.cc
    kernels/framework/control_flow.cc
    kernels/framework/function.cc
    kernels/framework/map_defun.cc
    kernels/framework/process.cc
    kernels/framework/send_receive.cc
    kernels/framework/state.cc
    kernels/framework/temporary_variable.cc
    kernels/image/bilinear_rows.cc
    kernels/image/bmp.cc
    kernels/image/boxes_cpu.cc
    kernels/image/color_cpu.cc
    kernels/image/crop_and_resize_cpu.cc
    kernels/image/data_format_cpu.cc
    kernels/image/dilation_cpu.cc
    kernels/image/fractional_pool_cpu.cc
    kernels/image/gif.cc
    kernels/image/image_codec.cc
    kernels/image/image_cpu.cc
    kernels/image/image_sampling_cpu.cc
    kernels/image/jpeg.cc
    kernels/image/non_max_suppression_cpu.cc
    kernels/image/patches_cpu.cc
    kernels/image/png.cc
    kernels/image/projection_cpu.cc
    kernels/image/resample.cc
    kernels/image/resize_cpu.cc
    kernels/image/webp.cc
    kernels/lib/arguments.cc
    kernels/lib/broadcast.cc
    kernels/lib/copy_run.cc
    kernels/lib/fill.cc
    kernels/lib/hash.cc
    kernels/lib/index_shuffle.cc
    kernels/lib/line_reader.cc
    kernels/lib/narrow_floats.cc
    kernels/lib/non_temporal.cc
    kernels/lib/row_update_cpu.cc
    kernels/lib/shared_state.cc
    kernels/lib/strided_copy.cc
    kernels/lib/string_handle.cc
    kernels/lib/summarize.cc
    kernels/lib/text_lines.cc
    kernels/lib/variable_access.cc
    kernels/lib/waiter_queue.cc
    kernels/linalg/blas.cc
    kernels/linalg/blas_kernels.cc
    kernels/linalg/clustering_cpu.cc
    kernels/linalg/decomposition_cpu.cc
    kernels/linalg/deferred_matmul.cc
    kernels/linalg/dnnl.cc
    kernels/linalg/dnnl_status.cc
    kernels/linalg/eigen_cpu.cc
    kernels/linalg/einsum_cpu.cc
    kernels/linalg/epilogue.cc
    kernels/linalg/fft.cc
    kernels/linalg/fft_cpu.cc
    kernels/linalg/fft_passes.cc
    kernels/linalg/fortran_blas.cc
    kernels/linalg/gemm.cc
    kernels/linalg/isotonic_cpu.cc
    kernels/linalg/lapack.cc
    kernels/linalg/linalg.cc
    kernels/linalg/matmul.cc
    kernels/linalg/matmul_bfloat16.cc
    kernels/linalg/matmul_cpu.cc
    kernels/linalg/matmul_packed.cc
    kernels/linalg/matrix_function_cpu.cc
    kernels/linalg/solve_cpu.cc
    kernels/linalg/triangular_cpu.cc
    kernels/linalg/tridiagonal_cpu.cc
    kernels/math/activation_cpu.cc
    kernels/math/arithmetic_cpu.cc
    kernels/math/bessel.cc
    kernels/math/betainc_cpu.cc
    kernels/math/cast_cpu.cc
    kernels/math/compare_cpu.cc
    kernels/math/divide_by_scalar_cpu.cc
    kernels/math/elementwise_loops.cc
    kernels/math/fused_elementwise.cc
    kernels/math/fused_reduction.cc
    kernels/math/gamma_vectors_cpu.cc
    kernels/math/mask_loops_cpu.cc
    kernels/math/quantile_vectors_cpu.cc
    kernels/math/reduce.cc
    kernels/math/reducers_cpu.cc
    kernels/math/register_fusion_cpu.cc
    kernels/math/row_steps_cpu.cc
    kernels/math/scalar_loop.cc
    kernels/math/scalar_program.cc
    kernels/math/scan_cpu.cc
    kernels/math/search_cpu.cc
    kernels/math/segment_cpu.cc
    kernels/math/select_cpu.cc
    kernels/math/sparse_segment_grad_cpu.cc
    kernels/math/special_cpu.cc
    kernels/math/special_functions.cc
    kernels/math/tile_program.cc
    kernels/math/transcendental_cpu.cc
    kernels/nn/batch_norm_cpu.cc
    kernels/nn/bias_cpu.cc
    kernels/nn/channel_ops.cc
    kernels/nn/conv.cc
    kernels/nn/conv_cpu.cc
    kernels/nn/conv_dnnl.cc
    kernels/nn/conv_im2col.cc
    kernels/nn/conv_plain.cc
    kernels/nn/conv_winograd.cc
    kernels/nn/ctc.cc
    kernels/nn/ctc_decode.cc
    kernels/nn/depthwise.cc
    kernels/nn/fused_attention.cc
    kernels/nn/fused_layer_norm.cc
    kernels/nn/global_norm_cpu.cc
    kernels/nn/gru_cpu.cc
    kernels/nn/lrn_cpu.cc
    kernels/nn/lrn_rows.cc
    kernels/nn/packed_weight_cache.cc
    kernels/nn/padded_images.cc
    kernels/nn/pool.cc
    kernels/nn/pool_argmax_cpu.cc
    kernels/nn/pool_cpu.cc
    kernels/nn/pool_rows.cc
    kernels/nn/rnn_cpu.cc
    kernels/nn/separable_conv_cpu.cc
    kernels/nn/softmax.cc
    kernels/nn/softmax_cpu.cc
    kernels/nn/winograd.cc
    kernels/quantize/fake_quant_cpu.cc
    kernels/quantize/fixed_point_map.cc
    kernels/quantize/quantize_and_dequantize_cpu.cc
    kernels/quantize/quantize_cpu.cc
    kernels/quantize/quantized_concat_cpu.cc
    kernels/quantize/quantized_fused_cpu.cc
    kernels/quantize/quantized_image_cpu.cc
    kernels/quantize/quantized_math_cpu.cc
    kernels/quantize/quantized_norm_cpu.cc
    kernels/quantize/quantized_range.cc
    kernels/quantize/requantize_cpu.cc
    kernels/quantize/requantize_per_channel_cpu.cc
    kernels/quantize/uniform_convolution_cpu.cc
    kernels/quantize/uniform_cpu.cc
    kernels/quantize/uniform_dot_cpu.cc
    kernels/quantize/uniform_product.cc
    kernels/random/binomial_cpu.cc
    kernels/random/candidates.cc
    kernels/random/distributions.cc
    kernels/random/gamma_cpu.cc
    kernels/random/generator.cc
    kernels/random/index_shuffle_cpu.cc
    kernels/random/philox_words_cpu.cc
    kernels/random/poisson_cpu.cc
    kernels/random/random_cpu.cc
    kernels/random/random_stream.cc
    kernels/random/sampling_cpu.cc
    kernels/random/sobol_cpu.cc
    kernels/random/stochastic_cast_cpu.cc
    kernels/random/truncated_normal_cpu.cc
    kernels/random/unigram.cc
    kernels/random/weights_cpu.cc
    kernels/registry.cc
    kernels/resumable.cc
    kernels/sparse/count_cpu.cc
    kernels/sparse/csr.cc
    kernels/sparse/csr_cholesky.cc
    kernels/sparse/csr_matrix.cc
    kernels/sparse/csr_product.cc
    kernels/sparse/feature_cross.cc
    kernels/sparse/ragged.cc
    kernels/sparse/ragged_cross_cpu.cc
    kernels/sparse/ragged_to_tensor_cpu.cc
    kernels/sparse/ragged_variant.cc
    kernels/sparse/sets_cpu.cc
    kernels/sparse/sparse_cpu.cc
    kernels/sparse/sparse_cross_cpu.cc
    kernels/sparse/sparse_map.cc
    kernels/sparse/sparse_math_cpu.cc
    kernels/sparse/sparse_matmul_cpu.cc
    kernels/sparse/sparse_parts_cpu.cc
    kernels/sparse/sparse_reduce_cpu.cc
    kernels/sparse/sparse_serialize.cc
    kernels/sparse/sparse_value.cc
    kernels/text/decode_proto.cc
    kernels/text/edit_distance_cpu.cc
    kernels/text/encode_proto.cc
    kernels/text/fixed_notation.cc
    kernels/text/proto_sanitizer.cc
    kernels/text/proto_schema.cc
    kernels/text/string.cc
    kernels/text/string_format.cc
    kernels/text/string_join.cc
    kernels/text/string_regex.cc
    kernels/text/string_split.cc
    kernels/text/unicode.cc
    kernels/train/sdca_cpu.cc
    kernels/train/sdca_loss.cc
    kernels/train/training_cpu.cc
    kernels/train/update_rows.cc
    kernels/train/word2vec.cc
    kernels/gpu/no_gpu.cc
  PRECOMPILED kernel)

weir_program(weir_kernels_generate_family_index
  OUTPUT kernels/generate_family_index
  LIBRARIES
    weir_kernels_builtin
    weir_core_bundle
    weir_core_sstable_writer
    weir_core_record
    weir_proto_event_proto
    weir_proto_snapshot_proto
    weir_kernels_backend
    weir_ops_index
    weir_ops_rules
    weir_core_graph_io
    weir_core_proto_file
    weir_core_file
    weir_core_text_proto
    weir_core_tensor_slice
    weir_proto_meta_graph_proto
    weir_proto_bundle_proto
    weir_proto_graph_proto
    weir_proto_uniform_quant_ops_attr_proto
    weir_kernels_json_example
    weir_proto_example_proto
    weir_kernels_sobol_numbers
    weir_kernels_uncontracted
    weir_core_runtime
    weir_third_party_highway
    weir_core_family_index
    weir_core_graph
    weir_core_tensor
  FLAGS
    "-lleveldb -pthread"
    -lgomp
    -l:libgif.a
    -licuuc
    -l:libjpeg.a
    "-l:libpng.a -l:libz.a -lm"
    "-L/usr/lib/x86_64-linux-gnu/lapack -L/usr/lib/x86_64-linux-gnu/blas -L/usr/lib/aarch64-linux-gnu/lapack -L/usr/lib/aarch64-linux-gnu/blas -l:liblapack.a -l:libblas.a -l:libgfortran.a -l:libquadmath.a"
    -l:libsqlite3.a
    "-l:libwebpdemux.a -l:libwebp.a -pthread"
    -l:libz.a
    "-l:libprotobuf.a -l:libz.a -pthread"
    -pthread
    -lhwy
    "-l:libre2.a -pthread"
    "-Wl,--start-group -l:libabsl_bad_optional_access.a -l:libabsl_bad_variant_access.a -l:libabsl_base.a -l:libabsl_city.a -l:libabsl_civil_time.a -l:libabsl_cord.a -l:libabsl_cord_internal.a -l:libabsl_cordz_functions.a -l:libabsl_cordz_handle.a -l:libabsl_cordz_info.a -l:libabsl_cordz_sample_token.a -l:libabsl_debugging_internal.a -l:libabsl_demangle_internal.a -l:libabsl_exponential_biased.a -l:libabsl_graphcycles_internal.a -l:libabsl_hash.a -l:libabsl_hashtablez_sampler.a -l:libabsl_int128.a -l:libabsl_log_severity.a -l:libabsl_low_level_hash.a -l:libabsl_malloc_internal.a -l:libabsl_raw_hash_set.a -l:libabsl_raw_logging_internal.a -l:libabsl_spinlock_wait.a -l:libabsl_stacktrace.a -l:libabsl_status.a -l:libabsl_statusor.a -l:libabsl_str_format_internal.a -l:libabsl_strerror.a -l:libabsl_strings.a -l:libabsl_strings_internal.a -l:libabsl_symbolize.a -l:libabsl_synchronization.a -l:libabsl_throw_delegate.a -l:libabsl_time.a -l:libabsl_time_zone.a -Wl,--end-group -pthread"
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_proto_event_proto
    weir_proto_snapshot_proto
  SOURCES kernels/generate_family_index.cc
  PRECOMPILED kernel)

weir_generate(weir_kernels_index_source
  OUTPUTS kernels/index.cc
  PROGRAMS weir_kernels_generate_family_index
  COMMAND [==["$BIN"/kernels/generate_family_index > "$BIN"/kernels/index.cc]==])

weir_library(weir_kernels_index
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_proto_event_proto
    weir_proto_snapshot_proto
  GENERATED kernels/index.cc
  PRECOMPILED kernel)

weir_library(weir_session
  NEEDS weir_proto_graph_proto
  SOURCES
    session/partial_run.cc
    session/passes/analyze_deadness.cc
    session/passes/assign_slots.cc
    session/passes/cache_step_invariants.cc
    session/passes/cached_subplan.cc
    session/passes/check_inlined_ops.cc
    session/passes/check_races.cc
    session/passes/check_unknown_ops.cc
    session/passes/compile.cc
    session/passes/deadness.cc
    session/passes/defer_matmuls.cc
    session/passes/effects.cc
    session/passes/elementwise_regions.cc
    session/passes/eliminate_common_subexpressions.cc
    session/passes/eliminate_dead_nodes.cc
    session/passes/emit_instructions.cc
    session/passes/find_loops.cc
    session/passes/fold_constants.cc
    session/passes/fuse_attention.cc
    session/passes/fuse_elementwise.cc
    session/passes/fuse_epilogues.cc
    session/passes/fuse_layer_norm.cc
    session/passes/fuse_scalar_loops.cc
    session/passes/fuse_separable_convs.cc
    session/passes/fuse_softmax.cc
    session/passes/fuse_updates.cc
    session/passes/hoist_constants.cc
    session/passes/inline_functions.cc
    session/passes/insert_copies.cc
    session/passes/insert_reads.cc
    session/passes/live_ranges.cc
    session/passes/make_kernels.cc
    session/passes/make_tasks.cc
    session/passes/order_initializers.cc
    session/passes/order_nodes.cc
    session/passes/order_reads.cc
    session/passes/passes.cc
    session/passes/place.cc
    session/passes/plan_memory.cc
    session/passes/prune.cc
    session/passes/prune_control_edges.cc
    session/passes/reduce_strength.cc
    session/passes/release_values.cc
    session/passes/remove_no_ops.cc
    session/passes/simplify_algebra.cc
    session/passes/sink_slices.cc
    session/passes/sink_tiles.cc
    session/passes/specialize.cc
    session/passes/structure_loops.cc
    session/passes/tile_batch.cc
    session/passes/tiled_subplan.cc
    session/plan/constant_values.cc
    session/plan/container_shapes.cc
    session/plan/elementwise_nodes.cc
    session/plan/external_waits.cc
    session/plan/fusion.cc
    session/plan/infer_shapes.cc
    session/plan/internal_nodes.cc
    session/plan/plan_dump.cc
    session/plan/plan_graph.cc
    session/plan/plan_request.cc
    session/plan/plan_uses.cc
    session/plan/row_ops.cc
    session/plan/subplan.cc
    session/plan/value_replacement.cc
    session/plan/variable_use.cc
    session/plan/verify_plan.cc
    session/remote_session.cc
    session/runtime/executor.cc
    session/runtime/functions.cc
    session/runtime/gradient_body.cc
    session/runtime/prepared_step.cc
    session/runtime/time_limited_step.cc
    session/runtime/uninitialized.cc
    session/session.cc
  PRECOMPILED kernel)

weir_library(weir_session_checkpoint
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_proto_event_proto
    weir_proto_meta_graph_proto
  SOURCES
    session/model/ancestors.cc
    session/model/captured_objects.cc
    session/model/constant_node.cc
    session/model/dead_branches.cc
    session/model/extract_function.cc
    session/model/freeze.cc
    session/model/interrupted_saves.cc
    session/model/meta_graph.cc
    session/model/meta_graph_import.cc
    session/model/needed_functions.cc
    session/model/object_export.cc
    session/model/object_functions.cc
    session/model/object_graph_builder.cc
    session/model/object_names.cc
    session/model/restore.cc
    session/model/restore_graph_info.cc
    session/model/restore_latest.cc
    session/model/resume_file.cc
    session/model/resume_state.cc
    session/model/save_snapshot.cc
    session/model/saved_function.cc
    session/model/saved_model.cc
    session/model/saved_objects.cc
    session/model/saver.cc
    session/model/saver_of_nodes.cc
    session/model/scoped_names.cc
    session/model/unfreeze.cc
    session/model/unneeded_writes.cc
    session/model/variable_values.cc
  PRECOMPILED kernel)

weir_library(weir_session_queue_runner
  NEEDS weir_proto_graph_proto
  SOURCES session/train/coordinator.cc session/train/queue_runner.cc
  PRECOMPILED kernel)

weir_library(weir_session_training
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_proto_event_proto
    weir_proto_meta_graph_proto
  SOURCES
    session/train/hooks.cc
    session/train/monitored_session.cc
    session/train/progress_logger.cc
    session/train/scaffold.cc
    session/train/step_timer.cc
    session/train/sync_replicas.cc
  PRECOMPILED kernel)

weir_library(weir_session_variable_io
  NEEDS weir_proto_graph_proto
  SOURCES session/model/variable_io.cc
  PRECOMPILED kernel)

weir_library(weir_core_npy
  SOURCES core/io/npy.cc
  PRECOMPILED library)

weir_generate(weir_core_generate_version
  OUTPUTS core/tensor/version.h
  INPUTS core/tensor/version.h.in VERSION
  COMMAND
    [==[
        IFS=. read -r major minor patch < ./VERSION
        sed "s/@VERSION@/$major.$minor.$patch/; s/@MAJOR@/$major/; s/@MINOR@/$minor/; s/@PATCH@/$patch/"             core/tensor/version.h.in > "$BIN"/core/tensor/version.h]==])

weir_installed_library(weir
  DESCRIPTION "Graphs, sessions, variables and checkpoints of TensorFlow, in C++"
  LIBRARIES
    weir_proto_step_stats_proto
    weir_session_training
    weir_session_checkpoint
    weir_session_queue_runner
    weir_session_variable_io
    weir_session
    weir_kernels_builtin
    weir_proto_snapshot_proto
    weir_kernels_json_example
    weir_proto_example_proto
    weir_kernels_sobol_numbers
    weir_kernels_uncontracted
    weir_kernels_index
    weir_core_bundle
    weir_core_sstable_writer
    weir_core_npy
    weir_core_record
    weir_proto_event_proto
    weir_kernels_backend
    weir_core_runtime
    weir_ops_index
    weir_ops_rules
    weir_core_graph_io
    weir_core_proto_file
    weir_core_file
    weir_core_text_proto
    weir_core_tensor_slice
    weir_proto_meta_graph_proto
    weir_proto_bundle_proto
    weir_proto_graph_proto
    weir_proto_uniform_quant_ops_attr_proto
    weir_core_graph
    weir_core_tensor
  EXPORTS weir_third_party_highway
  EXPORTED_SYMBOLS _ZN3hwy8platform15TimerResolutionEv
  HEADERS
    weir/weir.h
    weir/session/weir.h
    weir/proto.h
    weir/core/io/text_proto.h
  FLAGS
    "-lgomp -l:libgif.a -licuuc -l:libjpeg.a -l:libpng.a -l:libz.a -lm -L/usr/lib/x86_64-linux-gnu/lapack -L/usr/lib/x86_64-linux-gnu/blas -L/usr/lib/aarch64-linux-gnu/lapack -L/usr/lib/aarch64-linux-gnu/blas -l:liblapack.a -l:libblas.a -l:libgfortran.a -l:libquadmath.a -l:libsqlite3.a -l:libwebpdemux.a -l:libwebp.a -pthread -l:libz.a -lhwy -lleveldb -pthread -pthread -l:libprotobuf.a -l:libz.a -pthread -l:libre2.a -pthread -Wl,--start-group -l:libabsl_bad_optional_access.a -l:libabsl_bad_variant_access.a -l:libabsl_base.a -l:libabsl_city.a -l:libabsl_civil_time.a -l:libabsl_cord.a -l:libabsl_cord_internal.a -l:libabsl_cordz_functions.a -l:libabsl_cordz_handle.a -l:libabsl_cordz_info.a -l:libabsl_cordz_sample_token.a -l:libabsl_debugging_internal.a -l:libabsl_demangle_internal.a -l:libabsl_exponential_biased.a -l:libabsl_graphcycles_internal.a -l:libabsl_hash.a -l:libabsl_hashtablez_sampler.a -l:libabsl_int128.a -l:libabsl_log_severity.a -l:libabsl_low_level_hash.a -l:libabsl_malloc_internal.a -l:libabsl_raw_hash_set.a -l:libabsl_raw_logging_internal.a -l:libabsl_spinlock_wait.a -l:libabsl_stacktrace.a -l:libabsl_status.a -l:libabsl_statusor.a -l:libabsl_str_format_internal.a -l:libabsl_strerror.a -l:libabsl_strings.a -l:libabsl_strings_internal.a -l:libabsl_symbolize.a -l:libabsl_synchronization.a -l:libabsl_throw_delegate.a -l:libabsl_time.a -l:libabsl_time_zone.a -Wl,--end-group -pthread -Wl,--exclude-libs,libweir.a:libgif.a:libjpeg.a:libpng.a:libz.a:liblapack.a:libblas.a:libgfortran.a:libquadmath.a:libsqlite3.a:libwebpdemux.a:libwebp.a:libprotobuf.a:libre2.a:libabsl_bad_optional_access.a:libabsl_bad_variant_access.a:libabsl_base.a:libabsl_city.a:libabsl_civil_time.a:libabsl_cord.a:libabsl_cord_internal.a:libabsl_cordz_functions.a:libabsl_cordz_handle.a:libabsl_cordz_info.a:libabsl_cordz_sample_token.a:libabsl_debugging_internal.a:libabsl_demangle_internal.a:libabsl_exponential_biased.a:libabsl_graphcycles_internal.a:libabsl_hash.a:libabsl_hashtablez_sampler.a:libabsl_int128.a:libabsl_log_severity.a:libabsl_low_level_hash.a:libabsl_malloc_internal.a:libabsl_raw_hash_set.a:libabsl_raw_logging_internal.a:libabsl_spinlock_wait.a:libabsl_stacktrace.a:libabsl_status.a:libabsl_statusor.a:libabsl_str_format_internal.a:libabsl_strerror.a:libabsl_strings.a:libabsl_strings_internal.a:libabsl_symbolize.a:libabsl_synchronization.a:libabsl_throw_delegate.a:libabsl_time.a:libabsl_time_zone.a"
  SHARED_FLAGS
    "-Wl,--as-needed -labsl_bad_optional_access -labsl_bad_variant_access -labsl_base -labsl_city -labsl_civil_time -labsl_cord -labsl_cord_internal -labsl_cordz_functions -labsl_cordz_handle -labsl_cordz_info -labsl_cordz_sample_token -labsl_debugging_internal -labsl_demangle_internal -labsl_exponential_biased -labsl_graphcycles_internal -labsl_hash -labsl_hashtablez_sampler -labsl_int128 -labsl_log_severity -labsl_low_level_hash -labsl_malloc_internal -labsl_raw_hash_set -labsl_raw_logging_internal -labsl_spinlock_wait -labsl_stacktrace -labsl_status -labsl_statusor -labsl_str_format_internal -labsl_strerror -labsl_strings -labsl_strings_internal -labsl_symbolize -labsl_synchronization -labsl_throw_delegate -labsl_time -labsl_time_zone"
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_proto_event_proto
    weir_proto_example_proto
    weir_proto_meta_graph_proto
    weir_proto_step_stats_proto
    weir_core_generate_version)

weir_library(weir_rpc_grpc_status
  SOURCES rpc/lib/grpc_status.cc
  PRECOMPILED kernel)

weir_protos(weir_proto_config_proto
  PROTOS
    proto/cluster.proto
    proto/config.proto
    proto/coordination_config.proto
    proto/debug.proto
    proto/device_filters.proto
    proto/named_tensor.proto
    proto/rewriter_config.proto
    proto/rpc_options.proto
    proto/tensorflow_server.proto
    proto/verifier_config.proto
  NEEDS weir_proto_graph_proto weir_proto_step_stats_proto)

weir_protos(weir_proto_master_proto
  PROTOS proto/master.proto
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto)

weir_library(weir_rpc_client
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_master_proto
  SOURCES rpc/client.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_clients
  SOURCES rpc/lib/clients.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_call
  SOURCES
    rpc/lib/call.cc
    rpc/lib/memory_reservation.cc
    rpc/lib/request_numbers.cc
    rpc/lib/response_limit.cc
    rpc/lib/timer.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_caller
  SOURCES rpc/lib/caller.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_run_metadata
  NEEDS weir_proto_graph_proto weir_proto_step_stats_proto weir_proto_config_proto
  SOURCES rpc/lib/run_metadata.cc
  PRECOMPILED kernel)

weir_library(weir_ops_external_access
  SOURCES ops/lib/external_access.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED graph)

weir_library(weir_rpc_master
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_master_proto
  SOURCES
    rpc/lib/function_holders.cc
    rpc/lib/graph_policy.cc
    rpc/local_session.cc
    rpc/master.cc
    rpc/reaper.cc
    rpc/lib/session_requests.cc
    rpc/session_graph.cc
    rpc/session_table.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_message_bytes
  SOURCES rpc/lib/message_bytes.cc
  PRECOMPILED kernel)

weir_protos(weir_proto_worker_proto
  PROTOS proto/worker.proto
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto)

weir_library(weir_rpc_cluster
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_master_proto
    weir_proto_worker_proto
  SOURCES
    rpc/cluster/cluster_spec.cc
    rpc/cluster/cluster_step.cc
    rpc/cluster/cluster_task.cc
    rpc/cluster/lower_functional_ops.cc
    rpc/cluster/partial_steps.cc
    rpc/cluster/partition.cc
    rpc/cluster/peer_watch.cc
    rpc/cluster/peers.cc
    rpc/cluster/reachable_functions.cc
    rpc/cluster/receive_service.cc
    rpc/cluster/sent_value.cc
    rpc/cluster/step_exchange.cc
    rpc/cluster/task_calls.cc
    rpc/cluster/task_placement.cc
    rpc/cluster/worker_session.cc
    rpc/cluster/worker_sessions.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_listener
  SOURCES rpc/lib/listener.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_cluster_session
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_master_proto
    weir_proto_worker_proto
  SOURCES rpc/cluster_partial_run.cc rpc/cluster_session.cc rpc/cluster_steps.cc
  PRECOMPILED kernel)

weir_protos(weir_proto_serving_config_proto
  PROTOS
    proto/file_system_storage_path_source.proto
    proto/log_collector_config.proto
    proto/logging_config.proto
    proto/model_server_config.proto
    proto/monitoring_config.proto
    proto/session_bundle_config.proto)

weir_protos(weir_proto_serving_proto
  PROTOS
    proto/classification.proto
    proto/get_model_metadata.proto
    proto/get_model_status.proto
    proto/inference.proto
    proto/input.proto
    proto/logging.proto
    proto/model.proto
    proto/model_management.proto
    proto/predict.proto
    proto/prediction_log.proto
    proto/regression.proto
    proto/session_service.proto
    proto/status.proto
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_example_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto)

weir_library(weir_serving_servable
  NEEDS
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_example_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES
    serving/frozen_graph.cc
    serving/memory_use.cc
    serving/servable.cc
    serving/shown_name.cc
    serving/warm_up.cc
  PRECOMPILED kernel)

weir_library(weir_serving_text_config
  SOURCES serving/text_config.cc
  PRECOMPILED kernel)

weir_library(weir_serving_batching
  NEEDS
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_example_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES
    serving/batch_call.cc
    serving/batch_queue.cc
    serving/batch_tensors.cc
    serving/batching.cc
    serving/batching_parameters.cc
  PRECOMPILED kernel)

weir_library(weir_serving
  NEEDS
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_example_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES
    serving/inference.cc
    serving/loaded_version.cc
    serving/model_config.cc
    serving/model_manager.cc
    serving/model_versions.cc
    serving/version_directory.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_logs
  NEEDS
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_example_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES rpc/lib/background_writer.cc rpc/models/request_log.cc rpc/lib/server_log.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_predictions
  NEEDS
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_example_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES rpc/models/model_messages.cc rpc/models/model_service.cc rpc/models/prediction_service.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_request_size
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_example_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES rpc/lib/request_size.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_sandbox
  SOURCES rpc/sandbox.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_server
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_master_proto
    weir_proto_worker_proto
    weir_proto_event_proto
    weir_proto_example_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES
    rpc/lib/call_watch.cc
    rpc/lib/connections.cc
    rpc/lib/credentials.cc
    rpc/isolated_master.cc
    rpc/lib/memory_trimmer.cc
    rpc/lib/read_request.cc
    rpc/server.cc
    rpc/service.cc
    rpc/worker.cc
    rpc/worker_process.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_cluster_server
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_master_proto
    weir_proto_worker_proto
    weir_proto_event_proto
    weir_proto_example_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES rpc/cluster_server.cc
  PRECOMPILED kernel)

weir_installed_library(weir_rpc
  DESCRIPTION "Sessions of Weir over gRPC: clients and servers"
  LIBRARIES
    weir_rpc_client
    weir_rpc_cluster_server
    weir_rpc_server
    weir_rpc_cluster_session
    weir_rpc_cluster
    weir_rpc_caller
    weir_rpc_grpc_status
    weir_rpc_listener
    weir_rpc_master
    weir_rpc_run_metadata
    weir_ops_external_access
    weir_rpc_message_bytes
    weir_rpc_predictions
    weir_rpc_logs
    weir_rpc_call
    weir_rpc_clients
    weir_serving
    weir_serving_batching
    weir_serving_servable
    weir_serving_text_config
    weir_rpc_request_size
    weir_rpc_sandbox
    weir_proto_master_proto
    weir_proto_serving_proto
    weir_proto_serving_config_proto
    weir_proto_worker_proto
    weir_proto_config_proto
  REQUIRES weir
  HEADERS
    weir/rpc/client.h
    weir/rpc/cluster_server.h
    weir/rpc/lib/clients.h
    weir/rpc/server.h
  FLAGS
    "-l:libseccomp.a -l:libgrpc++.a -l:libgrpc.a -l:libupb.a -l:libaddress_sorting.a -l:libgpr.a -l:libre2.a -l:libcares.a -l:libssl.a -l:libcrypto.a -l:libz.a -Wl,--start-group -l:libabsl_random_distributions.a -l:libabsl_random_internal_platform.a -l:libabsl_random_internal_pool_urbg.a -l:libabsl_random_internal_randen.a -l:libabsl_random_internal_randen_hwaes.a -l:libabsl_random_internal_randen_hwaes_impl.a -l:libabsl_random_internal_randen_slow.a -l:libabsl_random_internal_seed_material.a -l:libabsl_random_seed_gen_exception.a -l:libabsl_random_seed_sequences.a -Wl,--end-group -ldl -pthread -Wl,--exclude-libs,libweir_rpc.a:libseccomp.a:libgrpc++.a:libgrpc.a:libupb.a:libaddress_sorting.a:libgpr.a:libre2.a:libcares.a:libssl.a:libcrypto.a:libz.a:libabsl_random_distributions.a:libabsl_random_internal_platform.a:libabsl_random_internal_pool_urbg.a:libabsl_random_internal_randen.a:libabsl_random_internal_randen_hwaes.a:libabsl_random_internal_randen_hwaes_impl.a:libabsl_random_internal_randen_slow.a:libabsl_random_internal_seed_material.a:libabsl_random_seed_gen_exception.a:libabsl_random_seed_sequences.a"
  SHARED_FLAGS
    "-Wl,--as-needed -labsl_random_distributions -labsl_random_internal_platform -labsl_random_internal_pool_urbg -labsl_random_internal_randen -labsl_random_internal_randen_hwaes -labsl_random_internal_randen_hwaes_impl -labsl_random_internal_randen_slow -labsl_random_internal_seed_material -labsl_random_seed_gen_exception -labsl_random_seed_sequences"
  NEEDS
    weir_proto_graph_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_master_proto
    weir_proto_worker_proto
    weir_proto_event_proto
    weir_proto_example_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
    weir_core_generate_version)

weir_library(weir_tools_element_text
  SOURCES tools/lib/csv.cc tools/lib/element_text.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_library(weir_rpc_json_events
  SOURCES rpc/models/json_events.cc
  PRECOMPILED kernel)

weir_library(weir_tools_data_records
  NEEDS weir_proto_example_proto
  SOURCES
    tools/data/data_file.cc
    tools/data/data_records.cc
    tools/data/example_record.cc
    tools/data/picture.cc
    tools/data/record_csv.cc
    tools/data/record_json.cc
    tools/data/record_json_reader.cc
    tools/data/record_statistics.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_library(weir_tools_event_log
  NEEDS weir_proto_graph_proto weir_proto_event_proto
  SOURCES tools/events/event_log.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_generate(weir_tools_gradient_tests_text
  OUTPUTS tools/gradient_tests_text.cc
  INPUTS
    tools/gradient_tests.awk
    tests/kernels/array/array_cases.cc
    tests/kernels/array/array_test.cc
    tests/kernels/array/column_parts_test.cc
    tests/kernels/array/gather_cases.cc
    tests/kernels/array/gather_test.cc
    tests/kernels/array/inplace_cases.cc
    tests/kernels/array/reverse_test.cc
    tests/kernels/array/sequence_test.cc
    tests/kernels/array/top_k_test.cc
    tests/kernels/array/transpose_test.cc
    tests/kernels/array/where_test.cc
    tests/kernels/audio/audio_test.cc
    tests/kernels/containers/composite_variant_test.cc
    tests/kernels/containers/data_flow_cases.cc
    tests/kernels/containers/queue_test.cc
    tests/kernels/containers/session_tensor_test.cc
    tests/kernels/containers/stored_value_codecs_test.cc
    tests/kernels/containers/tensor_array_test.cc
    tests/kernels/containers/tensor_list_test.cc
    tests/kernels/data/dataset_choice_test.cc
    tests/kernels/data/dataset_groups_test.cc
    tests/kernels/data/dataset_random_test.cc
    tests/kernels/data/dataset_values_test.cc
    tests/kernels/data/example_cases.cc
    tests/kernels/data/iterators_test.cc
    tests/kernels/data/parsing_cases.cc
    tests/kernels/data/record_stream_test.cc
    tests/kernels/data/remap_test.cc
    tests/kernels/data/summary_test.cc
    tests/kernels/framework/control_flow_test.cc
    tests/kernels/framework/map_defun_test.cc
    tests/kernels/framework/process_test.cc
    tests/kernels/framework/state_test.cc
    tests/kernels/image/color_test.cc
    tests/kernels/image/image_cases.cc
    tests/kernels/image/image_codec_test.cc
    tests/kernels/image/image_test.cc
    tests/kernels/image/non_max_suppression_test.cc
    tests/kernels/image/patch_cases.cc
    tests/kernels/image/resize_test.cc
    tests/kernels/image/webp_test.cc
    tests/kernels/lib/answers.cc
    tests/kernels/lib/bin_counter_test.cc
    tests/kernels/lib/bound_search_test.cc
    tests/kernels/lib/coverage_test.cc
    tests/kernels/lib/dense.cc
    tests/kernels/lib/hash_index_test.cc
    tests/kernels/lib/invalid_arguments_test.cc
    tests/kernels/lib/non_temporal_test.cc
    tests/kernels/lib/numeric_gradient.cc
    tests/kernels/lib/op_case.cc
    tests/kernels/lib/op_sweep_test.cc
    tests/kernels/lib/registry_test.cc
    tests/kernels/linalg/blas_test.cc
    tests/kernels/linalg/cache_budget_test.cc
    tests/kernels/linalg/dnnl_test.cc
    tests/kernels/linalg/einsum_cases.cc
    tests/kernels/linalg/fft_cases.cc
    tests/kernels/linalg/fft_lines_test.cc
    tests/kernels/linalg/fft_test.cc
    tests/kernels/linalg/fit_cases.cc
    tests/kernels/linalg/gemm_test.cc
    tests/kernels/linalg/linalg_cases.cc
    tests/kernels/linalg/linalg_gradients_test.cc
    tests/kernels/linalg/linalg_test.cc
    tests/kernels/linalg/old_matrix_test.cc
    tests/kernels/math/atan2_test.cc
    tests/kernels/math/cast_test.cc
    tests/kernels/math/clip_test.cc
    tests/kernels/math/divide_by_scalar_test.cc
    tests/kernels/math/error_functions_test.cc
    tests/kernels/math/fused_cases.cc
    tests/kernels/math/gamma_vectors_test.cc
    tests/kernels/math/math_cases.cc
    tests/kernels/math/narrow_floats_test.cc
    tests/kernels/math/quantile_vectors_test.cc
    tests/kernels/math/reduce_product_test.cc
    tests/kernels/math/reduction_cases.cc
    tests/kernels/math/reduction_order_test.cc
    tests/kernels/math/search_cases.cc
    tests/kernels/math/segment_test.cc
    tests/kernels/math/signed_zeros_test.cc
    tests/kernels/math/sparse_segment_grad_test.cc
    tests/kernels/math/special_cases.cc
    tests/kernels/math/special_gradients_test.cc
    tests/kernels/nn/batch_norm_reserve_test.cc
    tests/kernels/nn/batch_norm_test.cc
    tests/kernels/nn/conv_cases.cc
    tests/kernels/nn/ctc_cases.cc
    tests/kernels/nn/global_norm_test.cc
    tests/kernels/nn/large_conv_test.cc
    tests/kernels/nn/lrn_test.cc
    tests/kernels/nn/nn_cases.cc
    tests/kernels/nn/nn_test.cc
    tests/kernels/nn/pad_conv_test.cc
    tests/kernels/nn/pool_cases.cc
    tests/kernels/nn/pool_channels_test.cc
    tests/kernels/nn/rnn_cases.cc
    tests/kernels/quantize/fake_quant_test.cc
    tests/kernels/quantize/quantize_cases.cc
    tests/kernels/quantize/quantize_lengths_test.cc
    tests/kernels/quantize/quantize_test.cc
    tests/kernels/quantize/quantized_fused_test.cc
    tests/kernels/quantize/quantized_test.cc
    tests/kernels/quantize/requantize_test.cc
    tests/kernels/quantize/uniform_test.cc
    tests/kernels/random/draws_test.cc
    tests/kernels/random/multinomial_test.cc
    tests/kernels/random/random_cases.cc
    tests/kernels/random/sobol_test.cc
    tests/kernels/sparse/count_test.cc
    tests/kernels/sparse/csr_test.cc
    tests/kernels/sparse/ragged_cases.cc
    tests/kernels/sparse/ragged_test.cc
    tests/kernels/sparse/set_cases.cc
    tests/kernels/sparse/sparse_cases.cc
    tests/kernels/sparse/sparse_cross_cases.cc
    tests/kernels/sparse/sparse_math_cases.cc
    tests/kernels/sparse/sparse_order_test.cc
    tests/kernels/sparse/sparse_pack_test.cc
    tests/kernels/text/edit_distance_cases.cc
    tests/kernels/text/proto_fields_test.cc
    tests/kernels/text/string_cases.cc
    tests/kernels/text/string_test.cc
    tests/kernels/text/text_cases.cc
    tests/kernels/text/unicode_cases.cc
    tests/kernels/train/sdca_test.cc
    tests/kernels/train/training_test.cc
    tests/kernels/train/word2vec_test.cc
    tests/ops/data/dataset_goldens_test.cc
    tests/ops/data/dataset_test.cc
    tests/ops/framework/cond_test.cc
    tests/ops/framework/device_setter_test.cc
    tests/ops/framework/flow_goldens_test.cc
    tests/ops/framework/gradients_test.cc
    tests/ops/framework/initialization_test.cc
    tests/ops/framework/initializers_test.cc
    tests/ops/framework/mirrored_variable_test.cc
    tests/ops/framework/partitioned_goldens_test.cc
    tests/ops/framework/partitioned_variables_test.cc
    tests/ops/framework/variable_goldens_test.cc
    tests/ops/framework/variable_rules_test.cc
    tests/ops/framework/variable_scope_test.cc
    tests/ops/framework/variables_test.cc
    tests/ops/layers/layer_goldens_test.cc
    tests/ops/layers/layer_values_test.cc
    tests/ops/layers/layers_test.cc
    tests/ops/layers/loss_goldens_test.cc
    tests/ops/layers/metric_goldens_test.cc
    tests/ops/layers/module_test.cc
    tests/ops/lib/external_access_test.cc
    tests/ops/lib/failed_graph_builders_test.cc
    tests/ops/lib/failed_graph_test.cc
    tests/ops/lib/goldens.cc
    tests/ops/lib/huge_shapes_test.cc
    tests/ops/lib/literal_test.cc
    tests/ops/nn/nn_test.cc
    tests/ops/random/distributions_test.cc
    tests/ops/random/random_test.cc
    tests/ops/sparse/sparse_goldens_test.cc
    tests/ops/train/optimizers_test.cc
    tests/ops/train/training_goldens_test.cc
    tests/session/lib/cut_graph.cc
    tests/session/lib/equivalence_search.cc
    tests/session/lib/equivalence_test.cc
    tests/session/lib/gradient_check.cc
    tests/session/lib/late_device.cc
    tests/session/lib/late_kernel.cc
    tests/session/lib/random_control_flow.cc
    tests/session/lib/random_conv_net.cc
    tests/session/lib/random_tensors.cc
    tests/session/lib/random_training.cc
    tests/session/lib/test_models.cc
    tests/session/model/async_saver_test.cc
    tests/session/model/freeze_test.cc
    tests/session/model/load_from_memory_test.cc
    tests/session/model/message_bytes_test.cc
    tests/session/model/meta_graph_test.cc
    tests/session/model/mirrored_saver_test.cc
    tests/session/model/object_export_test.cc
    tests/session/model/object_names_test.cc
    tests/session/model/partitioned_saver_test.cc
    tests/session/model/restore_latest_test.cc
    tests/session/model/restore_test.cc
    tests/session/model/saved_function_test.cc
    tests/session/model/saved_model_gradients_test.cc
    tests/session/model/saved_model_test.cc
    tests/session/model/saver_retention_test.cc
    tests/session/model/saver_test.cc
    tests/session/model/saver_v1_test.cc
    tests/session/model/unfreeze_test.cc
    tests/session/model/variable_io_test.cc
    tests/session/partial_run_test.cc
    tests/session/passes/cache_step_invariants_test.cc
    tests/session/passes/check_races_test.cc
    tests/session/passes/check_unknown_ops_test.cc
    tests/session/passes/defer_matmuls_test.cc
    tests/session/passes/eliminate_dead_nodes_test.cc
    tests/session/passes/external_waits_test.cc
    tests/session/passes/fast_algorithms_test.cc
    tests/session/passes/fuse_attention_test.cc
    tests/session/passes/fuse_elementwise_test.cc
    tests/session/passes/fuse_epilogues_test.cc
    tests/session/passes/fuse_layer_norm_test.cc
    tests/session/passes/fuse_scalar_loops_test.cc
    tests/session/passes/fuse_separable_convs_test.cc
    tests/session/passes/fuse_softmax_test.cc
    tests/session/passes/fuse_updates_test.cc
    tests/session/passes/inline_functions_test.cc
    tests/session/passes/lowering_test.cc
    tests/session/passes/order_reads_test.cc
    tests/session/passes/place_test.cc
    tests/session/passes/prune_control_edges_test.cc
    tests/session/passes/reduce_strength_test.cc
    tests/session/passes/simplify_algebra_test.cc
    tests/session/passes/sink_slices_test.cc
    tests/session/passes/specialize_test.cc
    tests/session/passes/stack_shapes_test.cc
    tests/session/passes/step_invariant_weights_test.cc
    tests/session/passes/structure_loops_test.cc
    tests/session/passes/tile_batch_test.cc
    tests/session/passes/used_outputs_test.cc
    tests/session/plan/plan_graph_test.cc
    tests/session/runtime/accelerator_test.cc
    tests/session/runtime/backend_test.cc
    tests/session/runtime/cancellation_test.cc
    tests/session/runtime/cut_graph_test.cc
    tests/session/runtime/dataset_ahead_test.cc
    tests/session/runtime/dataset_files_test.cc
    tests/session/runtime/datasets_test.cc
    tests/session/runtime/empty_rows_test.cc
    tests/session/runtime/error_words_test.cc
    tests/session/runtime/function_gradients_test.cc
    tests/session/runtime/functional_test.cc
    tests/session/runtime/functions_test.cc
    tests/session/runtime/gradient_override_test.cc
    tests/session/runtime/io_ops_test.cc
    tests/session/runtime/loop_gradients_test.cc
    tests/session/runtime/loops_test.cc
    tests/session/runtime/no_memory_test.cc
    tests/session/runtime/queues_test.cc
    tests/session/runtime/readers_test.cc
    tests/session/runtime/send_receive_test.cc
    tests/session/runtime/snapshot_test.cc
    tests/session/runtime/staging_test.cc
    tests/session/runtime/stream_test.cc
    tests/session/runtime/switch_n_test.cc
    tests/session/runtime/tables_test.cc
    tests/session/runtime/temporary_variables_test.cc
    tests/session/runtime/threads_test.cc
    tests/session/runtime/uninitialized_test.cc
    tests/session/runtime/variant_gradients_test.cc
    tests/session/session_test.cc
    tests/session/train/crash_test.cc
    tests/session/train/exact_resume_kill_test.cc
    tests/session/train/exact_resume_test.cc
    tests/session/train/kill_test.cc
    tests/session/train/monitored_session_test.cc
    tests/session/train/queue_runner_test.cc
    tests/session/train/sync_replicas_goldens_test.cc
  COMMAND [==[awk -f ${inputs[@]:0} > "$BIN"/tools/gradient_tests_text.cc]==])

weir_library(weir_tools_gradient_tests
  NEEDS weir_proto_graph_proto
  SOURCES tools/ops/gradient_tests.cc
  GENERATED tools/gradient_tests_text.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_generate(weir_tools_left_out_ops_text
  OUTPUTS tools/left_out_ops_text.cc
  INPUTS tools/ops/tensorflow_ops.txt tools/ops/left_out_ops.txt
  COMMAND
    [==[(echo '#include "weir/tools/ops/left_out_ops.h"'; echo 'absl::string_view weir::tools::TensorFlowOpsText() { return R"text('; cat tools/ops/tensorflow_ops.txt; echo ')text"; }'; echo 'absl::string_view weir::tools::LeftOutOpsText() { return R"text('; cat tools/ops/left_out_ops.txt; echo ')text"; }') > "$BIN"/tools/left_out_ops_text.cc]==])

weir_library(weir_tools_left_out_ops
  SOURCES tools/ops/left_out_ops.cc
  GENERATED tools/left_out_ops_text.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_library(weir_tools_value_files
  NEEDS weir_proto_graph_proto weir_proto_bundle_proto weir_proto_example_proto
  SOURCES
    tools/lib/example_value.cc
    tools/lib/file_contents.cc
    tools/lib/gzip.cc
    tools/lib/image_value.cc
    tools/lib/json_value.cc
    tools/lib/npz.cc
    tools/lib/value_file.cc
    tools/lib/zip_archive.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_protos(weir_proto_onnx_proto
  PROTOS proto/onnx.proto)

weir_library(weir_onnx
  NEEDS
    weir_proto_graph_proto
    weir_proto_onnx_proto
    weir_proto_bundle_proto
    weir_proto_event_proto
    weir_proto_meta_graph_proto
  SOURCES
    onnx/activation.cc
    onnx/array.cc
    onnx/building.cc
    onnx/cast.cc
    onnx/conv.cc
    onnx/elementwise.cc
    onnx/flow.cc
    onnx/gather.cc
    onnx/graph_importer.cc
    onnx/importers.cc
    onnx/loss.cc
    onnx/matrix.cc
    onnx/node_context.cc
    onnx/norm.cc
    onnx/onnx_import.cc
    onnx/pad.cc
    onnx/pool.cc
    onnx/quantize.cc
    onnx/reduce.cc
    onnx/resize.cc
    onnx/rnn.cc
    onnx/shape.cc
    onnx/tensor_reader.cc
    onnx/window.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED graph)

weir_library(weir_session_chrome_trace
  NEEDS weir_proto_graph_proto
  SOURCES session/runtime/chrome_trace.cc
  PRECOMPILED kernel)

weir_library(weir_tools_cli
  NEEDS
    weir_proto_example_proto
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_bundle_proto
    weir_core_generate_version
    weir_proto_onnx_proto
    weir_proto_meta_graph_proto
  SOURCES
    tools/case/case.cc
    tools/case/case_collections.cc
    tools/case/case_runner.cc
    tools/case/process_pool.cc
    tools/case/scratch.cc
    tools/ckpt/array_reader.cc
    tools/ckpt/checkpoint_path.cc
    tools/ckpt/ckpt.cc
    tools/ckpt/ckpt_average.cc
    tools/ckpt/ckpt_convert.cc
    tools/ckpt/ckpt_diff.cc
    tools/ckpt/ckpt_edit.cc
    tools/ckpt/ckpt_gc.cc
    tools/ckpt/ckpt_ls.cc
    tools/ckpt/ckpt_merge.cc
    tools/ckpt/ckpt_pin.cc
    tools/ckpt/ckpt_repair.cc
    tools/ckpt/ckpt_show.cc
    tools/ckpt/ckpt_split.cc
    tools/ckpt/ckpt_verify.cc
    tools/ckpt/convert_elements.cc
    tools/ckpt/formats.cc
    tools/ckpt/gguf_blocks.cc
    tools/ckpt/gguf_file.cc
    tools/ckpt/gguf_metadata.cc
    tools/ckpt/hdf5_attributes.cc
    tools/ckpt/hdf5_driver.cc
    tools/ckpt/hdf5_file.cc
    tools/ckpt/hdf5_process.cc
    tools/ckpt/hdf5_reader.cc
    tools/ckpt/hdf5_types.cc
    tools/ckpt/keras_file.cc
    tools/ckpt/new_file.cc
    tools/ckpt/new_folder.cc
    tools/ckpt/npy_folder.cc
    tools/ckpt/npz_file.cc
    tools/ckpt/output.cc
    tools/ckpt/resume.cc
    tools/ckpt/rewrite.cc
    tools/ckpt/roles.cc
    tools/ckpt/safetensors_file.cc
    tools/ckpt/tensor_distance.cc
    tools/ckpt/tensor_statistics.cc
    tools/data/data.cc
    tools/data/data_convert.cc
    tools/data/data_show.cc
    tools/data/data_summary.cc
    tools/data/data_verify.cc
    tools/events/chart.cc
    tools/events/events.cc
    tools/events/events_html.cc
    tools/events/events_values.cc
    tools/graph/graph.cc
    tools/graph/graph_diff.cc
    tools/graph/graph_dot.cc
    tools/graph/graph_export.cc
    tools/graph/graph_file.cc
    tools/graph/graph_unfreeze.cc
    tools/graph/model.cc
    tools/graph/op_use.cc
    tools/graph/signature.cc
    tools/lib/cli.cc
    tools/lib/command.cc
    tools/lib/compare.cc
    tools/lib/completion.cc
    tools/lib/help.cc
    tools/lib/html_page.cc
    tools/lib/manual.cc
    tools/lib/progress.cc
    tools/lib/rename_rules.cc
    tools/lib/terminal.cc
    tools/lib/text_table.cc
    tools/lib/text_width.cc
    tools/lib/unknown_word.cc
    tools/model/model_command.cc
    tools/model/model_summary.cc
    tools/ops/missing_ops.cc
    tools/ops/ops.cc
    tools/run/feeds.cc
    tools/run/machine_limits.cc
    tools/run/node_cost.cc
    tools/run/pass_recorder.cc
    tools/run/passes.cc
    tools/run/profile.cc
    tools/run/profile_html.cc
    tools/run/profile_report.cc
    tools/run/request.cc
    tools/run/results.cc
    tools/run/run.cc
    tools/run/step_profile.cc
    tools/run/thread_waits.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_program(weir_tools_weir
  OUTPUT tools/weir
  LIBRARIES
    weir_tools_cli
    weir_tools_data_records
    weir_rpc_json_events
    weir_tools_event_log
    weir_tools_gradient_tests
    weir_tools_left_out_ops
    weir_tools_value_files
    weir_tools_element_text
    weir_core_npy
    weir_onnx
    weir_proto_onnx_proto
    weir_session_checkpoint
    weir_session_chrome_trace
    weir_session
    weir_kernels_builtin
    weir_core_bundle
    weir_core_sstable_writer
    weir_core_record
    weir_proto_event_proto
    weir_proto_snapshot_proto
    weir_kernels_backend
    weir_kernels_json_example
    weir_proto_example_proto
    weir_kernels_sobol_numbers
    weir_kernels_uncontracted
    weir_kernels_index
    weir_ops_index
    weir_ops_rules
    weir_core_graph_io
    weir_core_proto_file
    weir_core_file
    weir_core_text_proto
    weir_core_tensor_slice
    weir_proto_meta_graph_proto
    weir_proto_bundle_proto
    weir_proto_uniform_quant_ops_attr_proto
    weir_proto_graph_proto
    weir_third_party_highway
    weir_core_runtime
    weir_core_graph
    weir_core_tensor
  FLAGS
    "-l:libminizip.a -l:libz.a"
    "-lleveldb -pthread"
    -lgomp
    -l:libgif.a
    -l:libjpeg.a
    "-l:libpng.a -l:libz.a -lm"
    "-L/usr/lib/x86_64-linux-gnu/lapack -L/usr/lib/x86_64-linux-gnu/blas -L/usr/lib/aarch64-linux-gnu/lapack -L/usr/lib/aarch64-linux-gnu/blas -l:liblapack.a -l:libblas.a -l:libgfortran.a -l:libquadmath.a"
    -l:libsqlite3.a
    "-l:libwebpdemux.a -l:libwebp.a -pthread"
    -l:libz.a
    "-l:libprotobuf.a -l:libz.a -pthread"
    "-l:libhdf5_serial.a -l:libsz.a -l:libaec.a -l:libz.a -ldl -lm -pthread"
    -lhwy
    -licuuc
    -pthread
    "-l:libre2.a -pthread"
    "-Wl,--start-group -l:libabsl_bad_optional_access.a -l:libabsl_bad_variant_access.a -l:libabsl_base.a -l:libabsl_city.a -l:libabsl_civil_time.a -l:libabsl_cord.a -l:libabsl_cord_internal.a -l:libabsl_cordz_functions.a -l:libabsl_cordz_handle.a -l:libabsl_cordz_info.a -l:libabsl_cordz_sample_token.a -l:libabsl_debugging_internal.a -l:libabsl_demangle_internal.a -l:libabsl_exponential_biased.a -l:libabsl_graphcycles_internal.a -l:libabsl_hash.a -l:libabsl_hashtablez_sampler.a -l:libabsl_int128.a -l:libabsl_log_severity.a -l:libabsl_low_level_hash.a -l:libabsl_malloc_internal.a -l:libabsl_raw_hash_set.a -l:libabsl_raw_logging_internal.a -l:libabsl_spinlock_wait.a -l:libabsl_stacktrace.a -l:libabsl_status.a -l:libabsl_statusor.a -l:libabsl_str_format_internal.a -l:libabsl_strerror.a -l:libabsl_strings.a -l:libabsl_strings_internal.a -l:libabsl_symbolize.a -l:libabsl_synchronization.a -l:libabsl_throw_delegate.a -l:libabsl_time.a -l:libabsl_time_zone.a -Wl,--end-group -pthread"
  NEEDS
    weir_proto_example_proto
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_bundle_proto
    weir_core_generate_version
    weir_proto_onnx_proto
    weir_proto_meta_graph_proto
  SOURCES tools/main.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_library(weir_rpc_file_access
  SOURCES rpc/file_access.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_http
  SOURCES rpc/http/certificate_names.cc rpc/http/http_connection.cc rpc/http/http_server.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_metrics
  SOURCES rpc/metrics.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_json
  NEEDS
    weir_proto_example_proto
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES
    rpc/models/json_examples.cc
    rpc/models/json_predict.cc
    rpc/models/json_response.cc
    rpc/models/json_store.cc
  PRECOMPILED kernel)

weir_library(weir_rpc_rest_api
  NEEDS
    weir_proto_example_proto
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_bundle_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_serving_proto
  SOURCES
    rpc/models/call_statistics.cc
    rpc/models/json_model.cc
    rpc/models/logged_calls.cc
    rpc/models/rest_api.cc
    rpc/models/status_page.cc
  PRECOMPILED kernel)

weir_library(weir_tools_serve
  NEEDS
    weir_proto_example_proto
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_bundle_proto
    weir_core_generate_version
    weir_proto_onnx_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_master_proto
    weir_proto_worker_proto
    weir_proto_serving_proto
  SOURCES
    tools/serve/access.cc
    tools/serve/cluster.cc
    tools/serve/configuration.cc
    tools/serve/models.cc
    tools/serve/options.cc
    tools/serve/process.cc
    tools/serve/safety.cc
    tools/serve/serve.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_program(weir_tools_weir-serve
  OUTPUT tools/weir-serve
  LIBRARIES
    weir_tools_serve
    weir_tools_cli
    weir_tools_data_records
    weir_tools_event_log
    weir_tools_gradient_tests
    weir_tools_left_out_ops
    weir_tools_value_files
    weir_tools_element_text
    weir_core_npy
    weir_onnx
    weir_proto_onnx_proto
    weir_session_chrome_trace
    weir_rpc_client
    weir_rpc_cluster_server
    weir_rpc_file_access
    weir_rpc_metrics
    weir_rpc_rest_api
    weir_rpc_http
    weir_rpc_json
    weir_rpc_json_events
    weir_rpc_server
    weir_rpc_cluster_session
    weir_rpc_cluster
    weir_rpc_caller
    weir_rpc_grpc_status
    weir_rpc_listener
    weir_rpc_master
    weir_rpc_run_metadata
    weir_ops_external_access
    weir_rpc_message_bytes
    weir_rpc_predictions
    weir_rpc_logs
    weir_rpc_call
    weir_rpc_clients
    weir_serving
    weir_serving_batching
    weir_serving_servable
    weir_serving_text_config
    weir_session_checkpoint
    weir_session
    weir_rpc_request_size
    weir_rpc_sandbox
    weir_kernels_builtin
    weir_core_bundle
    weir_core_sstable_writer
    weir_core_record
    weir_proto_event_proto
    weir_proto_snapshot_proto
    weir_kernels_backend
    weir_kernels_json_example
    weir_kernels_sobol_numbers
    weir_kernels_uncontracted
    weir_third_party_highway
    weir_kernels_index
    weir_core_runtime
    weir_ops_index
    weir_ops_rules
    weir_core_graph_io
    weir_core_proto_file
    weir_core_file
    weir_core_text_proto
    weir_core_tensor_slice
    weir_proto_uniform_quant_ops_attr_proto
    weir_core_graph
    weir_core_tensor
    weir_proto_master_proto
    weir_proto_serving_proto
    weir_proto_example_proto
    weir_proto_serving_config_proto
    weir_proto_worker_proto
    weir_proto_config_proto
    weir_proto_meta_graph_proto
    weir_proto_bundle_proto
    weir_proto_step_stats_proto
    weir_proto_graph_proto
  FLAGS
    "-l:libminizip.a -l:libz.a"
    "-l:libhdf5_serial.a -l:libsz.a -l:libaec.a -l:libz.a -ldl -lm -pthread"
    -lprometheus-cpp-core
    "-l:libssl.a -l:libcrypto.a -ldl -pthread"
    -l:libseccomp.a
    "-lleveldb -pthread"
    -lgomp
    -l:libgif.a
    -licuuc
    -l:libjpeg.a
    "-l:libpng.a -l:libz.a -lm"
    "-L/usr/lib/x86_64-linux-gnu/lapack -L/usr/lib/x86_64-linux-gnu/blas -L/usr/lib/aarch64-linux-gnu/lapack -L/usr/lib/aarch64-linux-gnu/blas -l:liblapack.a -l:libblas.a -l:libgfortran.a -l:libquadmath.a"
    -l:libsqlite3.a
    "-l:libwebpdemux.a -l:libwebp.a -pthread"
    -l:libz.a
    -lhwy
    -pthread
    "-l:libre2.a -pthread"
    "-l:libprotobuf.a -l:libz.a -pthread"
    "-l:libgrpc++.a -l:libgrpc.a -l:libupb.a -l:libaddress_sorting.a -l:libgpr.a -l:libre2.a -l:libcares.a -l:libssl.a -l:libcrypto.a -l:libz.a -Wl,--start-group -l:libabsl_random_distributions.a -l:libabsl_random_internal_platform.a -l:libabsl_random_internal_pool_urbg.a -l:libabsl_random_internal_randen.a -l:libabsl_random_internal_randen_hwaes.a -l:libabsl_random_internal_randen_hwaes_impl.a -l:libabsl_random_internal_randen_slow.a -l:libabsl_random_internal_seed_material.a -l:libabsl_random_seed_gen_exception.a -l:libabsl_random_seed_sequences.a -Wl,--end-group -ldl -pthread"
    "-Wl,--start-group -l:libabsl_bad_optional_access.a -l:libabsl_bad_variant_access.a -l:libabsl_base.a -l:libabsl_city.a -l:libabsl_civil_time.a -l:libabsl_cord.a -l:libabsl_cord_internal.a -l:libabsl_cordz_functions.a -l:libabsl_cordz_handle.a -l:libabsl_cordz_info.a -l:libabsl_cordz_sample_token.a -l:libabsl_debugging_internal.a -l:libabsl_demangle_internal.a -l:libabsl_exponential_biased.a -l:libabsl_graphcycles_internal.a -l:libabsl_hash.a -l:libabsl_hashtablez_sampler.a -l:libabsl_int128.a -l:libabsl_log_severity.a -l:libabsl_low_level_hash.a -l:libabsl_malloc_internal.a -l:libabsl_raw_hash_set.a -l:libabsl_raw_logging_internal.a -l:libabsl_spinlock_wait.a -l:libabsl_stacktrace.a -l:libabsl_status.a -l:libabsl_statusor.a -l:libabsl_str_format_internal.a -l:libabsl_strerror.a -l:libabsl_strings.a -l:libabsl_strings_internal.a -l:libabsl_symbolize.a -l:libabsl_synchronization.a -l:libabsl_throw_delegate.a -l:libabsl_time.a -l:libabsl_time_zone.a -Wl,--end-group -pthread"
  NEEDS
    weir_proto_example_proto
    weir_proto_graph_proto
    weir_proto_event_proto
    weir_proto_bundle_proto
    weir_core_generate_version
    weir_proto_onnx_proto
    weir_proto_meta_graph_proto
    weir_proto_serving_config_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_master_proto
    weir_proto_worker_proto
    weir_proto_serving_proto
  SOURCES tools/serve/heap.cc tools/serve/serve_main.cc
  OPTIONS -O1 -freorder-functions
  PRECOMPILED tool)

weir_installed_programs(weir_tools_weir-serve
  PROGRAMS weir_tools_weir weir_tools_weir-serve
  PRINTED
    share/bash-completion/completions/weir
    "completion bash"
    share/fish/vendor_completions.d/weir.fish
    "completion fish"
    share/man/man1/weir.1
    "help --man"
    share/zsh/site-functions/_weir
    "completion zsh")

weir_protos(weir_proto_api_def_proto
  PROTOS proto/api_def.proto
  NEEDS weir_proto_graph_proto)

weir_library(weir_capi_tensorflow
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_core_generate_version
    weir_proto_api_def_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_meta_graph_proto
    weir_proto_event_proto
  SOURCES
    capi/api_def_map.cc
    capi/api_def_text.cc
    capi/attr_values.cc
    capi/buffer.cc
    capi/checkpoint_reader.cc
    capi/compatibility.cc
    capi/deprecated_session.cc
    capi/description.cc
    capi/devices.cc
    capi/evaluate.cc
    capi/extensions/checkpoints.cc
    capi/extensions/collections.cc
    capi/extensions/initializer_text.cc
    capi/extensions/meta_graphs.cc
    capi/extensions/models.cc
    capi/extensions/optimizer_text.cc
    capi/extensions/optimizers.cc
    capi/extensions/options.cc
    capi/extensions/savers.cc
    capi/extensions/tensors.cc
    capi/extensions/traces.cc
    capi/extensions/variables.cc
    capi/function.cc
    capi/function_def.cc
    capi/function_hash.cc
    capi/get_attr.cc
    capi/gradients.cc
    capi/graph.cc
    capi/import.cc
    capi/input_types.cc
    capi/kernel_builder.cc
    capi/kernel_construction.cc
    capi/kernel_context.cc
    capi/kernel_list.cc
    capi/kernel_step.cc
    capi/library.cc
    capi/op_definition.cc
    capi/operation.cc
    capi/partial_run.cc
    capi/plugins.cc
    capi/saved_model.cc
    capi/server.cc
    capi/session.cc
    capi/session_run.cc
    capi/shape_inference.cc
    capi/status.cc
    capi/step_cache.cc
    capi/summary.cc
    capi/tensor.cc
    capi/tstring.cc
    capi/updated_inputs.cc
    capi/while_loop.cc
  INCLUDES capi
  PRECOMPILED kernel)

weir_library(weir_capi_eager
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_core_generate_version
    weir_proto_api_def_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_meta_graph_proto
    weir_proto_event_proto
  SOURCES
    capi/eager/callable.cc
    capi/eager/context.cc
    capi/eager/context_api.cc
    capi/eager/direct_value.cc
    capi/eager/execute.cc
    capi/eager/executor.cc
    capi/eager/executor_api.cc
    capi/eager/functions.cc
    capi/eager/handle.cc
    capi/eager/infer_shapes.cc
    capi/eager/op.cc
    capi/eager/op_attrs.cc
    capi/eager/program.cc
    capi/eager/recorder.cc
    capi/eager/signature.cc
  INCLUDES capi
  PRECOMPILED kernel)

weir_installed_library(weir_capi
  DESCRIPTION "TensorFlow's C API on Weir, and Weir's own"
  LIBRARIES
    weir_capi_eager
    weir_capi_tensorflow
    weir_proto_api_def_proto
    weir_rpc_run_metadata
    weir_proto_config_proto
    weir_session_chrome_trace
  REQUIRES weir
  HEADERS
    tensorflow/c/c_api.h
    tensorflow/c/c_api_experimental.h
    tensorflow/c/eager/c_api.h
    tensorflow/c/eager/c_api_experimental.h
    tensorflow/c/kernels.h
    tensorflow/c/ops.h
    weir/c_api.h
  INCLUDES capi
  FLAGS -Wl,--exclude-libs,libweir_capi.a
  SHARED_FLAGS -Wl,--as-needed
  NEEDS
    weir_proto_graph_proto
    weir_proto_bundle_proto
    weir_core_generate_version
    weir_proto_api_def_proto
    weir_proto_step_stats_proto
    weir_proto_config_proto
    weir_proto_meta_graph_proto
    weir_proto_event_proto
    weir_proto_example_proto)
