entry @rows(%arg0: tile<ptr<f16>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<i32>, %arg4: tile<i32>, %arg5: tile<ptr<f16>>, %arg6: tile<i32>, %arg7: tile<i32>, %arg8: tile<i32>, %arg9: tile<i32>, %arg10: tile<i32>) optimization_hints=<default = {occupancy = 2}> {
  %0 = make_token : token loc(#loc20)
  %assume = assume div_by<16>, %arg0 : tile<ptr<f16>> loc(#loc21)
  %assume_0 = assume div_by<16>, %arg1 : tile<i32> loc(#loc21)
  %assume_1 = assume div_by<16>, %arg2 : tile<i32> loc(#loc21)
  %assume_2 = assume div_by<16>, %arg3 : tile<i32> loc(#loc21)
  %assume_3 = assume div_by<16>, %arg5 : tile<ptr<f16>> loc(#loc22)
  %assume_4 = assume div_by<16>, %arg6 : tile<i32> loc(#loc22)
  %assume_5 = assume div_by<16>, %arg7 : tile<i32> loc(#loc22)
  %assume_6 = assume div_by<16>, %arg8 : tile<i32> loc(#loc22)
  %cst_1_i32 = constant <i32: 1> : tile<i32> loc(#loc20)
  %cst_1_i32_7 = constant <i32: 1> : tile<i32> loc(#loc20)
  %assume_assume = assume bounded<0, ?>, %assume_0 : tile<i32> loc(#loc20)
  %assume_assume_assume = assume div_by<16>, %assume_assume : tile<i32> loc(#loc20)
  %assume_assume_8 = assume bounded<0, ?>, %assume_1 : tile<i32> loc(#loc20)
  %assume_assume_assume_9 = assume div_by<16>, %assume_assume_8 : tile<i32> loc(#loc20)
  %assume_assume_10 = assume bounded<0, ?>, %assume_2 : tile<i32> loc(#loc20)
  %assume_assume_assume_11 = assume div_by<16>, %assume_assume_10 : tile<i32> loc(#loc20)
  %tview = make_tensor_view %assume, shape = [%assume_assume_assume, %assume_assume_assume_9], strides = [%assume_assume_assume_11, 1] : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]> loc(#loc20)
  %assume_assume_12 = assume bounded<0, ?>, %assume_4 : tile<i32> loc(#loc20)
  %assume_assume_assume_13 = assume div_by<16>, %assume_assume_12 : tile<i32> loc(#loc20)
  %assume_assume_14 = assume bounded<0, ?>, %assume_5 : tile<i32> loc(#loc20)
  %assume_assume_assume_15 = assume div_by<16>, %assume_assume_14 : tile<i32> loc(#loc20)
  %assume_assume_16 = assume bounded<0, ?>, %assume_6 : tile<i32> loc(#loc20)
  %assume_assume_assume_17 = assume div_by<16>, %assume_assume_16 : tile<i32> loc(#loc20)
  %tview_18 = make_tensor_view %assume_3, shape = [%assume_assume_assume_13, %assume_assume_assume_15], strides = [%assume_assume_assume_17, 1] : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]> loc(#loc20)
  %blockId_x, %blockId_y, %blockId_z = get_tile_block_id : tile<i32> loc(#loc23)
  %gridSize_x, %gridSize_y, %gridSize_z = get_num_tile_blocks : tile<i32> loc(#loc24)
  %cst_0_i32 = constant <i32: 0> : tile<i32> loc(#loc25)
  %pview = make_partition_view %tview_18 : partition_view<tile=(1x64), padding_value = neg_inf, tensor_view<?x?xf16, strides=[?,1]>> loc(#loc26)
  %cst_f32 = constant <f32: 1.500000e+00> : tile<f32> loc(#loc27)
  %reshape = reshape %cst_f32 : tile<f32> -> tile<1x1xf32> loc(#loc28)
  %bcast = broadcast %reshape : tile<1x1xf32> -> tile<1x64xf32> loc(#loc28)
  %cst_0_i32_19 = constant <i32: 0> : tile<i32> loc(#loc29)
  %pview_20 = make_partition_view %tview : partition_view<tile=(1x64), tensor_view<?x?xf16, strides=[?,1]>> loc(#loc30)
  for %loopIdx in (%blockId_x to %arg10, step %gridSize_x) : tile<i32> {
    %tile, %result_token = load_view_tko weak %pview[%loopIdx, %cst_0_i32] token = %0 optimization_hints = <default = {latency = 3}> : partition_view<tile=(1x64), padding_value = neg_inf, tensor_view<?x?xf16, strides=[?,1]>>, tile<i32> -> tile<1x64xf16>, token loc(#loc26)
    %1 = ftof %tile  : tile<1x64xf16> -> tile<1x64xf32> loc(#loc40)
    %reduce = reduce %1 dim=1 identities=[0xFF800000 : f32] : tile<1x64xf32> -> tile<1xf32> 
    (%reduce_lhs: tile<f32>, %reduce_rhs: tile<f32>) {
      %8 = maxf %reduce_lhs, %reduce_rhs : tile<f32> loc(#loc33)
      yield %8 : tile<f32> loc(#loc33)
    } loc(#loc33)
    %reshape_21 = reshape %reduce : tile<1xf32> -> tile<1x1xf32> loc(#loc33)
    %bcast_22 = broadcast %reshape_21 : tile<1x1xf32> -> tile<1x64xf32> loc(#loc34)
    %2 = subf %1, %bcast_22  : tile<1x64xf32> loc(#loc34)
    %3 = mulf %2, %bcast  : tile<1x64xf32> loc(#loc28)
    %4 = exp2 %3 flush_to_zero : tile<1x64xf32> loc(#loc35)
    %reduce_23 = reduce %4 dim=1 identities=[0.000000e+00 : f32] : tile<1x64xf32> -> tile<1xf32> 
    (%reduce_lhs: tile<f32>, %reduce_rhs: tile<f32>) {
      %8 = addf %reduce_lhs, %reduce_rhs  : tile<f32> loc(#loc36)
      yield %8 : tile<f32> loc(#loc36)
    } loc(#loc36)
    %reshape_24 = reshape %reduce_23 : tile<1xf32> -> tile<1x1xf32> loc(#loc36)
    %bcast_25 = broadcast %reshape_24 : tile<1x1xf32> -> tile<1x64xf32> loc(#loc37)
    %5 = divf %4, %bcast_25 rounding<approx> flush_to_zero : tile<1x64xf32> loc(#loc37)
    %6 = ftof %5  : tile<1x64xf32> -> tile<1x64xf16> loc(#loc41)
    %7 = store_view_tko weak %6, %pview_20[%loopIdx, %cst_0_i32_19] token = %0 optimization_hints = <default = {allow_tma = false}> : tile<1x64xf16>, partition_view<tile=(1x64), tensor_view<?x?xf16, strides=[?,1]>>, tile<i32> -> token loc(#loc30)
  } loc(#loc31)
  return loc(#loc19)
} loc(#loc20)
#di_file = #cuda_tile.di_file<"kernels.py" in "">
#di_file1 = #cuda_tile.di_file<"_stub.py" in "site-packages/cuda/tile">
#loc = loc("kernels.py":11:0)
#loc1 = loc("kernels.py":11:9)
#loc2 = loc("kernels.py":11:14)
#loc3 = loc("kernels.py":12:19)
#loc4 = loc("kernels.py":12:38)
#loc5 = loc("kernels.py":13:29)
#loc6 = loc("kernels.py":13:12)
#loc7 = loc("kernels.py":14:56)
#loc8 = loc("kernels.py":14:20)
#loc9 = loc("kernels.py":16:26)
#loc10 = loc("kernels.py":16:8)
#loc11 = loc("kernels.py":12:4)
#loc12 = loc("site-packages/cuda/tile/_stub.py":678:15)
#loc13 = loc("kernels.py":14:25)
#loc14 = loc("kernels.py":14:21)
#loc15 = loc("kernels.py":14:12)
#loc16 = loc("kernels.py":15:26)
#loc17 = loc("kernels.py":15:12)
#loc18 = loc("kernels.py":16:30)
#loc19 = loc(unknown)
#di_compile_unit = #cuda_tile.di_compile_unit<file = #di_file>
#di_compile_unit1 = #cuda_tile.di_compile_unit<file = #di_file1>
#di_subprogram = #cuda_tile.di_subprogram<file = #di_file, line = 10, name = "rows", linkageName = "rows", compileUnit = #di_compile_unit, scopeLine = 10>
#di_subprogram1 = #cuda_tile.di_subprogram<file = #di_file1, line = 676, name = "astype", linkageName = "astype@_stub:676:5_s0", compileUnit = #di_compile_unit1, scopeLine = 676>
#di_subprogram2 = #cuda_tile.di_subprogram<file = #di_file1, line = 676, name = "astype", linkageName = "astype@_stub:676:5_s1", compileUnit = #di_compile_unit1, scopeLine = 676>
#loc20 = #cuda_tile.di_loc<#loc in #di_subprogram>
#loc21 = #cuda_tile.di_loc<#loc1 in #di_subprogram>
#loc22 = #cuda_tile.di_loc<#loc2 in #di_subprogram>
#loc23 = #cuda_tile.di_loc<#loc3 in #di_subprogram>
#loc24 = #cuda_tile.di_loc<#loc4 in #di_subprogram>
#loc25 = #cuda_tile.di_loc<#loc5 in #di_subprogram>
#loc26 = #cuda_tile.di_loc<#loc6 in #di_subprogram>
#loc27 = #cuda_tile.di_loc<#loc7 in #di_subprogram>
#loc28 = #cuda_tile.di_loc<#loc8 in #di_subprogram>
#loc29 = #cuda_tile.di_loc<#loc9 in #di_subprogram>
#loc30 = #cuda_tile.di_loc<#loc10 in #di_subprogram>
#loc31 = #cuda_tile.di_loc<#loc11 in #di_subprogram>
#loc32 = #cuda_tile.di_loc<#loc12 in #di_subprogram1>
#loc33 = #cuda_tile.di_loc<#loc13 in #di_subprogram>
#loc34 = #cuda_tile.di_loc<#loc14 in #di_subprogram>
#loc35 = #cuda_tile.di_loc<#loc15 in #di_subprogram>
#loc36 = #cuda_tile.di_loc<#loc16 in #di_subprogram>
#loc37 = #cuda_tile.di_loc<#loc17 in #di_subprogram>
#loc38 = #cuda_tile.di_loc<#loc12 in #di_subprogram2>
#loc39 = #cuda_tile.di_loc<#loc18 in #di_subprogram>
#loc40 = loc(callsite(#loc32 at #loc26))
#loc41 = loc(callsite(#loc38 at #loc39))
