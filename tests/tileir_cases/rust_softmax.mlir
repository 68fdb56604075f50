entry @softmax_entry(%arg0: tile<ptr<f16>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<i32>, %arg4: tile<i32>, %arg5: tile<ptr<f16>>, %arg6: tile<i32>, %arg7: tile<i32>, %arg8: tile<i32>, %arg9: tile<i32>, %arg10: tile<i32>) optimization_hints=<sm_90 = {occupancy = 2}> {
  %cst_1024_i32 = constant <i32: 1024> : tile<i32> loc(#loc23)
  %assume = assume bounded<0, ?>, %arg1 : tile<i32> loc(#loc22)
  %assume_assume = assume div_by<16>, %assume : tile<i32> loc(#loc22)
  %assume_0 = assume bounded<0, ?>, %arg2 : tile<i32> loc(#loc22)
  %assume_assume_1 = assume div_by<16>, %assume_0 : tile<i32> loc(#loc22)
  %assume_2 = assume bounded<0, ?>, %arg3 : tile<i32> loc(#loc22)
  %assume_assume_3 = assume div_by<16>, %assume_2 : tile<i32> loc(#loc22)
  %0 = make_token : token loc(#loc22)
  %assume_4 = assume div_by<16>, %arg0 : tile<ptr<f16>> loc(#loc22)
  %tview = make_tensor_view %assume_4, shape = [%assume_assume, %assume_assume_1], strides = [%assume_assume_3, 1] : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]> loc(#loc22)
  %assume_5 = assume bounded<0, ?>, %arg6 : tile<i32> loc(#loc22)
  %assume_assume_6 = assume div_by<16>, %assume_5 : tile<i32> loc(#loc22)
  %assume_7 = assume bounded<0, ?>, %arg7 : tile<i32> loc(#loc22)
  %assume_assume_8 = assume div_by<16>, %assume_7 : tile<i32> loc(#loc22)
  %assume_9 = assume bounded<0, ?>, %arg8 : tile<i32> loc(#loc22)
  %assume_assume_10 = assume div_by<16>, %assume_9 : tile<i32> loc(#loc22)
  %1 = make_token : token loc(#loc22)
  %assume_11 = assume div_by<16>, %arg5 : tile<ptr<f16>> loc(#loc22)
  %tview_12 = make_tensor_view %assume_11, shape = [%assume_assume_6, %assume_assume_8], strides = [%assume_assume_10, 1] : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]> loc(#loc22)
  %cst_1024_i32_13 = constant <i32: 1024> : tile<i32> loc(#loc44)
  %blockId_x, %blockId_y, %blockId_z = get_tile_block_id : tile<i32> loc(#loc45)
  %assume_blockId_x = assume bounded<0, ?>, %blockId_x : tile<i32> loc(#loc45)
  %assume_blockId_y = assume bounded<0, ?>, %blockId_y : tile<i32> loc(#loc45)
  %assume_blockId_z = assume bounded<0, ?>, %blockId_z : tile<i32> loc(#loc45)
  %gridSize_x, %gridSize_y, %gridSize_z = get_num_tile_blocks : tile<i32> loc(#loc46)
  %assume_gridSize_x = assume bounded<0, ?>, %gridSize_x : tile<i32> loc(#loc46)
  %assume_gridSize_y = assume bounded<0, ?>, %gridSize_y : tile<i32> loc(#loc46)
  %assume_gridSize_z = assume bounded<0, ?>, %gridSize_z : tile<i32> loc(#loc46)
  %cst_-1_i32 = constant <i32: -1> : tile<i32> loc(#loc44)
  %cst_-1_i32_14 = constant <i32: -1> : tile<i32> loc(#loc44)
  %cst_-1_i32_15 = constant <i32: -1> : tile<i32> loc(#loc44)
  %cst_-1_i32_16 = constant <i32: -1> : tile<i32> loc(#loc44)
  %pview = make_partition_view %tview_12 : partition_view<tile=(1x1024), padding_value = neg_inf, tensor_view<?x?xf16, strides=[?,1]>> loc(#loc47)
  %cst_1_i32 = constant <i32: 1> : tile<i32> loc(#loc48)
  %cst_1024_i32_17 = constant <i32: 1024> : tile<i32> loc(#loc48)
  %cst_-1_i32_18 = constant <i32: -1> : tile<i32> loc(#loc48)
  %cst_-1_i32_19 = constant <i32: -1> : tile<i32> loc(#loc48)
  %cst_-1_i32_20 = constant <i32: -1> : tile<i32> loc(#loc48)
  %cst_-1_i32_21 = constant <i32: -1> : tile<i32> loc(#loc48)
  %pview_22 = make_partition_view %tview : partition_view<tile=(1x1024), tensor_view<?x?xf16, strides=[?,1]>> loc(#loc48)
  for %loopIdx in (%assume_blockId_x to %arg10, step %assume_gridSize_x) : tile<i32> {
    %cst_0_i32 = constant <i32: 0> : tile<i32> loc(#loc50)
    %cst_1_i32_23 = constant <i32: 1> : tile<i32> loc(#loc51)
    %cst_1024_i32_24 = constant <i32: 1024> : tile<i32> loc(#loc51)
    %tile, %result_token = load_view_tko weak %pview[%loopIdx, %cst_0_i32] token = %1 : partition_view<tile=(1x1024), padding_value = neg_inf, tensor_view<?x?xf16, strides=[?,1]>>, tile<i32> -> tile<1x1024xf16>, token loc(#loc51)
    %2 = ftof %tile  : tile<1x1024xf16> -> tile<1x1024xf32> loc(#loc52)
    %reduce = reduce %2 dim=1 identities=[0xFF800000 : f32] : tile<1x1024xf32> -> tile<1xf32> 
    (%reduce_lhs: tile<f32>, %reduce_rhs: tile<f32>) {
      %8 = maxf %reduce_lhs, %reduce_rhs : tile<f32> loc(#loc53)
      yield %8 : tile<f32> loc(#loc53)
    } loc(#loc53)
    %cst_1_i32_25 = constant <i32: 1> : tile<i32> loc(#loc54)
    %cst_1_i32_26 = constant <i32: 1> : tile<i32> loc(#loc54)
    %cst_1_i32_27 = constant <i32: 1> : tile<i32> loc(#loc54)
    %reshape = reshape %reduce : tile<1xf32> -> tile<1x1xf32> loc(#loc54)
    %cst_1_i32_28 = constant <i32: 1> : tile<i32> loc(#loc54)
    %cst_1_i32_29 = constant <i32: 1> : tile<i32> loc(#loc54)
    %cst_1_i32_30 = constant <i32: 1> : tile<i32> loc(#loc54)
    %cst_1024_i32_31 = constant <i32: 1024> : tile<i32> loc(#loc54)
    %bcast = broadcast %reshape : tile<1x1xf32> -> tile<1x1024xf32> loc(#loc54)
    %3 = subf %2, %bcast  : tile<1x1024xf32> loc(#loc55)
    %4 = exp %3  : tile<1x1024xf32> loc(#loc56)
    %reduce_32 = reduce %4 dim=1 identities=[0.000000e+00 : f32] : tile<1x1024xf32> -> tile<1xf32> 
    (%reduce_lhs: tile<f32>, %reduce_rhs: tile<f32>) {
      %8 = addf %reduce_lhs, %reduce_rhs  : tile<f32> loc(#loc57)
      yield %8 : tile<f32> loc(#loc57)
    } loc(#loc57)
    %cst_1_i32_33 = constant <i32: 1> : tile<i32> loc(#loc58)
    %cst_1_i32_34 = constant <i32: 1> : tile<i32> loc(#loc58)
    %cst_1_i32_35 = constant <i32: 1> : tile<i32> loc(#loc58)
    %reshape_36 = reshape %reduce_32 : tile<1xf32> -> tile<1x1xf32> loc(#loc58)
    %cst_1_i32_37 = constant <i32: 1> : tile<i32> loc(#loc58)
    %cst_1_i32_38 = constant <i32: 1> : tile<i32> loc(#loc58)
    %cst_1_i32_39 = constant <i32: 1> : tile<i32> loc(#loc58)
    %cst_1024_i32_40 = constant <i32: 1024> : tile<i32> loc(#loc58)
    %bcast_41 = broadcast %reshape_36 : tile<1x1xf32> -> tile<1x1024xf32> loc(#loc58)
    %5 = divf %4, %bcast_41 rounding<approx> flush_to_zero : tile<1x1024xf32> loc(#loc59)
    %6 = ftof %5  : tile<1x1024xf32> -> tile<1x1024xf16> loc(#loc60)
    %cst_0_i32_42 = constant <i32: 0> : tile<i32> loc(#loc61)
    %cst_1_i32_43 = constant <i32: 1> : tile<i32> loc(#loc62)
    %cst_1024_i32_44 = constant <i32: 1024> : tile<i32> loc(#loc62)
    %7 = store_view_tko weak %6, %pview_22[%loopIdx, %cst_0_i32_42] token = %0 : tile<1x1024xf16>, partition_view<tile=(1x1024), tensor_view<?x?xf16, strides=[?,1]>>, tile<i32> -> token loc(#loc62)
  } loc(#loc49)
  return loc(#loc43)
} loc(#loc22)
#di_file = #cuda_tile.di_file<"kernel.rs" in "">
#loc = loc("kernel.rs":4:8)
#loc1 = loc("kernel.rs":4:18)
#loc2 = loc("kernel.rs":4:0)
#loc3 = loc("kernel.rs":9:29)
#loc4 = loc("kernel.rs":10:32)
#loc5 = loc("kernel.rs":11:62)
#loc6 = loc("kernel.rs":12:70)
#loc7 = loc("kernel.rs":13:8)
#loc8 = loc("kernel.rs":14:65)
#loc9 = loc("kernel.rs":14:49)
#loc10 = loc("kernel.rs":15:52)
#loc11 = loc("kernel.rs":16:40)
#loc12 = loc("kernel.rs":17:52)
#loc13 = loc("kernel.rs":18:57)
#loc14 = loc("kernel.rs":18:53)
#loc15 = loc("kernel.rs":19:40)
#loc16 = loc("kernel.rs":20:52)
#loc17 = loc("kernel.rs":21:51)
#loc18 = loc("kernel.rs":22:50)
#loc19 = loc("kernel.rs":23:34)
#loc20 = loc("kernel.rs":23:12)
#loc21 = loc("kernel.rs":8:6)
#di_compile_unit = #cuda_tile.di_compile_unit<file = #di_file>
#di_subprogram = #cuda_tile.di_subprogram<file = #di_file, line = 4, name = "softmax", linkageName = "softmax_entry", compileUnit = #di_compile_unit, scopeLine = 4>
#di_subprogram1 = #cuda_tile.di_subprogram<file = #di_file, line = 4, name = "softmax", linkageName = "softmax@kernel:4:18", compileUnit = #di_compile_unit, scopeLine = 4>
#loc22 = #cuda_tile.di_loc<#loc in #di_subprogram>
#loc23 = #cuda_tile.di_loc<#loc1 in #di_subprogram>
#loc24 = #cuda_tile.di_loc<#loc2 in #di_subprogram1>
#loc25 = #cuda_tile.di_loc<#loc3 in #di_subprogram1>
#loc26 = #cuda_tile.di_loc<#loc4 in #di_subprogram1>
#loc27 = #cuda_tile.di_loc<#loc5 in #di_subprogram1>
#loc28 = #cuda_tile.di_loc<#loc6 in #di_subprogram1>
#loc29 = #cuda_tile.di_loc<#loc7 in #di_subprogram1>
#loc30 = #cuda_tile.di_loc<#loc8 in #di_subprogram1>
#loc31 = #cuda_tile.di_loc<#loc9 in #di_subprogram1>
#loc32 = #cuda_tile.di_loc<#loc10 in #di_subprogram1>
#loc33 = #cuda_tile.di_loc<#loc11 in #di_subprogram1>
#loc34 = #cuda_tile.di_loc<#loc12 in #di_subprogram1>
#loc35 = #cuda_tile.di_loc<#loc13 in #di_subprogram1>
#loc36 = #cuda_tile.di_loc<#loc14 in #di_subprogram1>
#loc37 = #cuda_tile.di_loc<#loc15 in #di_subprogram1>
#loc38 = #cuda_tile.di_loc<#loc16 in #di_subprogram1>
#loc39 = #cuda_tile.di_loc<#loc17 in #di_subprogram1>
#loc40 = #cuda_tile.di_loc<#loc18 in #di_subprogram1>
#loc41 = #cuda_tile.di_loc<#loc19 in #di_subprogram1>
#loc42 = #cuda_tile.di_loc<#loc20 in #di_subprogram1>
#loc43 = #cuda_tile.di_loc<#loc21 in #di_subprogram>
#loc44 = loc(callsite(#loc24 at #loc22))
#loc45 = loc(callsite(#loc25 at #loc22))
#loc46 = loc(callsite(#loc26 at #loc22))
#loc47 = loc(callsite(#loc27 at #loc22))
#loc48 = loc(callsite(#loc28 at #loc22))
#loc49 = loc(callsite(#loc29 at #loc22))
#loc50 = loc(callsite(#loc30 at #loc22))
#loc51 = loc(callsite(#loc31 at #loc22))
#loc52 = loc(callsite(#loc32 at #loc22))
#loc53 = loc(callsite(#loc33 at #loc22))
#loc54 = loc(callsite(#loc34 at #loc22))
#loc55 = loc(callsite(#loc35 at #loc22))
#loc56 = loc(callsite(#loc36 at #loc22))
#loc57 = loc(callsite(#loc37 at #loc22))
#loc58 = loc(callsite(#loc38 at #loc22))
#loc59 = loc(callsite(#loc39 at #loc22))
#loc60 = loc(callsite(#loc40 at #loc22))
#loc61 = loc(callsite(#loc41 at #loc22))
#loc62 = loc(callsite(#loc42 at #loc22))
