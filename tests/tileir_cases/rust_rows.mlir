entry @rows_entry(%arg0: tile<ptr<f16>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<i32>, %arg4: tile<i32>, %arg5: tile<ptr<f16>>, %arg6: tile<i32>, %arg7: tile<i32>, %arg8: tile<i32>, %arg9: tile<i32>, %arg10: tile<i32>) optimization_hints=<default = {occupancy = 2}> {
  %cst_64_i32 = constant <i32: 64> : tile<i32> loc(#loc29)
  %assume = assume bounded<0, ?>, %arg1 : tile<i32> loc(#loc28)
  %assume_assume = assume div_by<16>, %assume : tile<i32> loc(#loc28)
  %assume_0 = assume bounded<0, ?>, %arg2 : tile<i32> loc(#loc28)
  %assume_assume_1 = assume div_by<16>, %assume_0 : tile<i32> loc(#loc28)
  %assume_2 = assume bounded<0, ?>, %arg3 : tile<i32> loc(#loc28)
  %assume_assume_3 = assume div_by<16>, %assume_2 : tile<i32> loc(#loc28)
  %0 = make_token : token loc(#loc28)
  %assume_4 = assume div_by<16>, %arg0 : tile<ptr<f16>> loc(#loc28)
  %tview = make_tensor_view %assume_4, shape = [%assume_assume, %assume_assume_1], strides = [%assume_assume_3, 1] : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]> loc(#loc28)
  %assume_5 = assume bounded<0, ?>, %arg6 : tile<i32> loc(#loc28)
  %assume_assume_6 = assume div_by<16>, %assume_5 : tile<i32> loc(#loc28)
  %assume_7 = assume bounded<0, ?>, %arg7 : tile<i32> loc(#loc28)
  %assume_assume_8 = assume div_by<16>, %assume_7 : tile<i32> loc(#loc28)
  %assume_9 = assume bounded<0, ?>, %arg8 : tile<i32> loc(#loc28)
  %assume_assume_10 = assume div_by<16>, %assume_9 : tile<i32> loc(#loc28)
  %1 = make_token : token loc(#loc28)
  %assume_11 = assume div_by<16>, %arg5 : tile<ptr<f16>> loc(#loc28)
  %tview_12 = make_tensor_view %assume_11, shape = [%assume_assume_6, %assume_assume_8], strides = [%assume_assume_10, 1] : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]> loc(#loc28)
  %cst_64_i32_13 = constant <i32: 64> : tile<i32> loc(#loc56)
  %2 = make_token : token loc(#loc57)
  %cst_-1_i32 = constant <i32: -1> : tile<i32> loc(#loc56)
  %cst_-1_i32_14 = constant <i32: -1> : tile<i32> loc(#loc56)
  %pview = make_partition_view %tview_12 : partition_view<tile=(1x64), padding_value = neg_inf, tensor_view<?x?xf16, strides=[?,1]>> loc(#loc58)
  %cst_-1_i32_15 = constant <i32: -1> : tile<i32> loc(#loc56)
  %cst_-1_i32_16 = constant <i32: -1> : tile<i32> loc(#loc56)
  %pview_17 = make_partition_view %tview : partition_view<tile=(1x64), tensor_view<?x?xf16, strides=[?,1]>> loc(#loc59)
  %cst_0_i32 = constant <i32: 0> : tile<i32> loc(#loc60)
  %blockId_x, %blockId_y, %blockId_z = get_tile_block_id : tile<i32> loc(#loc61)
  %gridSize_x, %gridSize_y, %gridSize_z = get_num_tile_blocks : tile<i32> loc(#loc62)
  for %loopIdx in (%blockId_x to %arg10, step %gridSize_x) : tile<i32> {
    %false = constant <i1: false> : tile<i1> loc(#loc64)
    %false_18 = constant <i1: false> : tile<i1> loc(#loc65)
    %tile, %result_token = load_view_tko weak %pview[%loopIdx, %cst_0_i32] token = %2 optimization_hints = <sm_90 = {latency = 3}> : partition_view<tile=(1x64), padding_value = neg_inf, tensor_view<?x?xf16, strides=[?,1]>>, tile<i32> -> tile<1x64xf16>, token loc(#loc66)
    %3 = ftof %tile  : tile<1x64xf16> -> tile<1x64xf32> loc(#loc67)
    %reduce = reduce %3 dim=1 identities=[0xFF800000 : f32] : tile<1x64xf32> -> tile<1xf32> 
    (%reduce_lhs: tile<f32>, %reduce_rhs: tile<f32>) {
      %10 = maxf %reduce_lhs, %reduce_rhs : tile<f32> loc(#loc68)
      yield %10 : tile<f32> loc(#loc68)
    } loc(#loc68)
    %cst_1_i32 = constant <i32: 1> : tile<i32> loc(#loc69)
    %cst_1_i32_19 = constant <i32: 1> : tile<i32> loc(#loc69)
    %cst_1_i32_20 = constant <i32: 1> : tile<i32> loc(#loc69)
    %reshape = reshape %reduce : tile<1xf32> -> tile<1x1xf32> loc(#loc69)
    %cst_1_i32_21 = constant <i32: 1> : tile<i32> loc(#loc69)
    %cst_1_i32_22 = constant <i32: 1> : tile<i32> loc(#loc69)
    %cst_1_i32_23 = constant <i32: 1> : tile<i32> loc(#loc69)
    %cst_64_i32_24 = constant <i32: 64> : tile<i32> loc(#loc69)
    %bcast = broadcast %reshape : tile<1x1xf32> -> tile<1x64xf32> loc(#loc69)
    %cst_f32 = constant <f32: 1.500000e+00> : tile<1x64xf32> loc(#loc70)
    %4 = subf %3, %bcast  : tile<1x64xf32> loc(#loc71)
    %5 = mulf %4, %cst_f32  : tile<1x64xf32> loc(#loc72)
    %6 = exp2 %5 flush_to_zero : tile<1x64xf32> loc(#loc73)
    %reduce_25 = reduce %6 dim=1 identities=[0.000000e+00 : f32] : tile<1x64xf32> -> tile<1xf32> 
    (%reduce_lhs: tile<f32>, %reduce_rhs: tile<f32>) {
      %10 = addf %reduce_lhs, %reduce_rhs  : tile<f32> loc(#loc74)
      yield %10 : tile<f32> loc(#loc74)
    } loc(#loc74)
    %cst_1_i32_26 = constant <i32: 1> : tile<i32> loc(#loc75)
    %cst_1_i32_27 = constant <i32: 1> : tile<i32> loc(#loc75)
    %cst_1_i32_28 = constant <i32: 1> : tile<i32> loc(#loc75)
    %reshape_29 = reshape %reduce_25 : tile<1xf32> -> tile<1x1xf32> loc(#loc75)
    %cst_1_i32_30 = constant <i32: 1> : tile<i32> loc(#loc75)
    %cst_1_i32_31 = constant <i32: 1> : tile<i32> loc(#loc75)
    %cst_1_i32_32 = constant <i32: 1> : tile<i32> loc(#loc75)
    %cst_64_i32_33 = constant <i32: 64> : tile<i32> loc(#loc75)
    %bcast_34 = broadcast %reshape_29 : tile<1x1xf32> -> tile<1x64xf32> loc(#loc75)
    %7 = divf %6, %bcast_34 rounding<approx> flush_to_zero : tile<1x64xf32> loc(#loc76)
    %8 = ftof %7  : tile<1x64xf32> -> tile<1x64xf16> loc(#loc77)
    %false_35 = constant <i1: false> : tile<i1> loc(#loc78)
    %false_36 = constant <i1: false> : tile<i1> loc(#loc79)
    %9 = store_view_tko weak %8, %pview_17[%loopIdx, %cst_0_i32] token = %2 optimization_hints = <sm_90 = {allow_tma = false}> : tile<1x64xf16>, partition_view<tile=(1x64), tensor_view<?x?xf16, strides=[?,1]>>, tile<i32> -> token loc(#loc80)
  } loc(#loc63)
  return loc(#loc55)
} loc(#loc28)
#di_file = #cuda_tile.di_file<"kernel.rs" in "">
#loc = loc("kernel.rs":48:8)
#loc1 = loc("kernel.rs":48:18)
#loc2 = loc("kernel.rs":48:0)
#loc3 = loc("kernel.rs":49:27)
#loc4 = loc("kernel.rs":50:62)
#loc5 = loc("kernel.rs":51:62)
#loc6 = loc("kernel.rs":52:38)
#loc7 = loc("kernel.rs":53:39)
#loc8 = loc("kernel.rs":54:38)
#loc9 = loc("kernel.rs":55:8)
#loc10 = loc("kernel.rs":57:176)
#loc11 = loc("kernel.rs":57:183)
#loc12 = loc("kernel.rs":57:69)
#loc13 = loc("kernel.rs":58:47)
#loc14 = loc("kernel.rs":59:40)
#loc15 = loc("kernel.rs":60:47)
#loc16 = loc("kernel.rs":61:47)
#loc17 = loc("kernel.rs":62:53)
#loc18 = loc("kernel.rs":62:52)
#loc19 = loc("kernel.rs":62:47)
#loc20 = loc("kernel.rs":63:40)
#loc21 = loc("kernel.rs":64:47)
#loc22 = loc("kernel.rs":65:47)
#loc23 = loc("kernel.rs":66:45)
#loc24 = loc("kernel.rs":67:147)
#loc25 = loc("kernel.rs":67:154)
#loc26 = loc("kernel.rs":67:38)
#loc27 = loc("kernel.rs":48:132)
#di_compile_unit = #cuda_tile.di_compile_unit<file = #di_file>
#di_subprogram = #cuda_tile.di_subprogram<file = #di_file, line = 48, name = "rows", linkageName = "rows_entry", compileUnit = #di_compile_unit, scopeLine = 48>
#di_subprogram1 = #cuda_tile.di_subprogram<file = #di_file, line = 48, name = "rows", linkageName = "rows@kernel:48:18", compileUnit = #di_compile_unit, scopeLine = 48>
#loc28 = #cuda_tile.di_loc<#loc in #di_subprogram>
#loc29 = #cuda_tile.di_loc<#loc1 in #di_subprogram>
#loc30 = #cuda_tile.di_loc<#loc2 in #di_subprogram1>
#loc31 = #cuda_tile.di_loc<#loc3 in #di_subprogram1>
#loc32 = #cuda_tile.di_loc<#loc4 in #di_subprogram1>
#loc33 = #cuda_tile.di_loc<#loc5 in #di_subprogram1>
#loc34 = #cuda_tile.di_loc<#loc6 in #di_subprogram1>
#loc35 = #cuda_tile.di_loc<#loc7 in #di_subprogram1>
#loc36 = #cuda_tile.di_loc<#loc8 in #di_subprogram1>
#loc37 = #cuda_tile.di_loc<#loc9 in #di_subprogram1>
#loc38 = #cuda_tile.di_loc<#loc10 in #di_subprogram1>
#loc39 = #cuda_tile.di_loc<#loc11 in #di_subprogram1>
#loc40 = #cuda_tile.di_loc<#loc12 in #di_subprogram1>
#loc41 = #cuda_tile.di_loc<#loc13 in #di_subprogram1>
#loc42 = #cuda_tile.di_loc<#loc14 in #di_subprogram1>
#loc43 = #cuda_tile.di_loc<#loc15 in #di_subprogram1>
#loc44 = #cuda_tile.di_loc<#loc16 in #di_subprogram1>
#loc45 = #cuda_tile.di_loc<#loc17 in #di_subprogram1>
#loc46 = #cuda_tile.di_loc<#loc18 in #di_subprogram1>
#loc47 = #cuda_tile.di_loc<#loc19 in #di_subprogram1>
#loc48 = #cuda_tile.di_loc<#loc20 in #di_subprogram1>
#loc49 = #cuda_tile.di_loc<#loc21 in #di_subprogram1>
#loc50 = #cuda_tile.di_loc<#loc22 in #di_subprogram1>
#loc51 = #cuda_tile.di_loc<#loc23 in #di_subprogram1>
#loc52 = #cuda_tile.di_loc<#loc24 in #di_subprogram1>
#loc53 = #cuda_tile.di_loc<#loc25 in #di_subprogram1>
#loc54 = #cuda_tile.di_loc<#loc26 in #di_subprogram1>
#loc55 = #cuda_tile.di_loc<#loc27 in #di_subprogram>
#loc56 = loc(callsite(#loc30 at #loc28))
#loc57 = loc(callsite(#loc31 at #loc28))
#loc58 = loc(callsite(#loc32 at #loc28))
#loc59 = loc(callsite(#loc33 at #loc28))
#loc60 = loc(callsite(#loc34 at #loc28))
#loc61 = loc(callsite(#loc35 at #loc28))
#loc62 = loc(callsite(#loc36 at #loc28))
#loc63 = loc(callsite(#loc37 at #loc28))
#loc64 = loc(callsite(#loc38 at #loc28))
#loc65 = loc(callsite(#loc39 at #loc28))
#loc66 = loc(callsite(#loc40 at #loc28))
#loc67 = loc(callsite(#loc41 at #loc28))
#loc68 = loc(callsite(#loc42 at #loc28))
#loc69 = loc(callsite(#loc43 at #loc28))
#loc70 = loc(callsite(#loc44 at #loc28))
#loc71 = loc(callsite(#loc45 at #loc28))
#loc72 = loc(callsite(#loc46 at #loc28))
#loc73 = loc(callsite(#loc47 at #loc28))
#loc74 = loc(callsite(#loc48 at #loc28))
#loc75 = loc(callsite(#loc49 at #loc28))
#loc76 = loc(callsite(#loc50 at #loc28))
#loc77 = loc(callsite(#loc51 at #loc28))
#loc78 = loc(callsite(#loc52 at #loc28))
#loc79 = loc(callsite(#loc53 at #loc28))
#loc80 = loc(callsite(#loc54 at #loc28))
