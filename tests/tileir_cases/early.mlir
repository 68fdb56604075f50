entry @early(%arg0: tile<ptr<f32>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<ptr<f32>>, %arg4: tile<i32>, %arg5: tile<i32>, %arg6: tile<ptr<i32>>, %arg7: tile<i32>, %arg8: tile<i32>, %arg9: tile<i32>) optimization_hints=<default = {}> {
  %0 = make_token : token
  %cst_1_i32 = constant <i32: 1> : tile<i32>
  %cst_1_i32_0 = constant <i32: 1> : tile<i32>
  %cst_1_i32_1 = constant <i32: 1> : tile<i32>
  %false = constant <i1: false> : tile<i1>
  %true = constant <i1: true> : tile<i1>
  %assume = assume bounded<0, ?>, %arg1 : tile<i32>
  %tview = make_tensor_view %arg0, shape = [%assume], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
  %assume_2 = assume bounded<0, ?>, %arg4 : tile<i32>
  %tview_3 = make_tensor_view %arg3, shape = [%assume_2], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
  %assume_4 = assume bounded<0, ?>, %arg7 : tile<i32>
  %tview_5 = make_tensor_view %arg6, shape = [%assume_4], strides = [1] : tile<i32> -> tensor_view<?xi32, strides=[1]>
  %false_6 = constant <i1: false> : tile<i1>
  %cst_0_i32 = constant <i32: 0> : tile<i32>
  %cst_1_f32 = constant <f32: 1.000000e+00> : tile<16xf32>
  %pview = make_partition_view %tview_3 : partition_view<tile=(16), tensor_view<?xf32, strides=[1]>>
  %cst_0_i32_7 = constant <i32: 0> : tile<i32>
  %cst_1_i32_8 = constant <i32: 1> : tile<i32>
  %pview_9 = make_partition_view %tview_5 : partition_view<tile=(1), tensor_view<?xi32, strides=[1]>>
  %cst_0_i32_10 = constant <i32: 0> : tile<i32>
  %1:3 = loop iter_values(%arg10 = %0, %arg11 = %0, %arg12 = %0) : token, token, token -> token, token, token {
    %8 = store_view_tko weak %cst_1_f32, %pview[%cst_0_i32] token = %arg10 : tile<16xf32>, partition_view<tile=(16), tensor_view<?xf32, strides=[1]>>, tile<i32> -> token
    %for:3 = for %loopIdx in (%cst_0_i32_7 to %arg9, step %cst_1_i32_8) : tile<i32> iter_values(%iterArg0 = %false_6, %iterArg1 = %false, %iterArg2 = %arg12) -> (tile<i1>, tile<i1>, token) {
      if %iterArg1 {
        continue %iterArg0, %iterArg1, %iterArg2 : tile<i1>, tile<i1>, token
      } else {
      }
      %tile_26, %result_token_27 = load_view_tko weak %pview_9[%loopIdx] token = %0 : partition_view<tile=(1), tensor_view<?xi32, strides=[1]>>, tile<i32> -> tile<1xi32>, token
      %9 = join_tokens %iterArg2, %result_token_27 : token
      %reshape_28 = reshape %tile_26 : tile<1xi32> -> tile<i32>
      %10 = cmpi greater_than %reshape_28, %cst_0_i32_10, signed : tile<i32> -> tile<i1>
      if %10 {
        %true_29 = constant <i1: true> : tile<i1>
        continue %true_29, %true, %9 : tile<i1>, tile<i1>, token
      } else {
      }
      continue %iterArg0, %iterArg1, %9 : tile<i1>, tile<i1>, token
    }
    if %for#0 {
      break %8, %8, %for#2 : token, token, token
    } else {
    }
    break %8, %8, %for#2 : token, token, token
  }
  %cst_0_i32_11 = constant <i32: 0> : tile<i32>
  %cst_1_i32_12 = constant <i32: 1> : tile<1xi32>
  %pview_13 = make_partition_view %tview_5 : partition_view<tile=(1), tensor_view<?xi32, strides=[1]>>
  %2 = store_view_tko weak %cst_1_i32_12, %pview_13[%cst_0_i32_11] token = %1#2 : tile<1xi32>, partition_view<tile=(1), tensor_view<?xi32, strides=[1]>>, tile<i32> -> token
  %cst_0_i32_14 = constant <i32: 0> : tile<i32>
  %pview_15 = make_partition_view %tview_3 : partition_view<tile=(16), tensor_view<?xf32, strides=[1]>>
  %tile, %result_token = load_view_tko weak %pview_15[%cst_0_i32_14] token = %1#1 : partition_view<tile=(16), tensor_view<?xf32, strides=[1]>>, tile<i32> -> tile<16xf32>, token
  %3 = join_tokens %1#0, %result_token : token
  %cst_0_i32_16 = constant <i32: 0> : tile<i32>
  %pview_17 = make_partition_view %tview : partition_view<tile=(1), tensor_view<?xf32, strides=[1]>>
  %tile_18, %result_token_19 = load_view_tko weak %pview_17[%cst_0_i32_16] token = %0 : partition_view<tile=(1), tensor_view<?xf32, strides=[1]>>, tile<i32> -> tile<1xf32>, token
  %reshape = reshape %tile_18 : tile<1xf32> -> tile<f32>
  %cst_0_f32 = constant <f32: 0.000000e+00> : tile<f32>
  %4 = cmpf greater_than ordered %reshape, %cst_0_f32 : tile<f32> -> tile<i1>
  %cst_1_i32_20 = constant <i32: 1> : tile<i32>
  %cst_0_f32_21 = constant <f32: 0.000000e+00> : tile<16xf32>
  %cst_0_i32_22 = constant <i32: 0> : tile<i32>
  %5:3 = loop iter_values(%arg10 = %cst_0_f32_21, %arg11 = %cst_0_i32_22, %arg12 = %0) : tile<16xf32>, tile<i32>, token -> tile<16xf32>, tile<i32>, token {
    %8 = join_tokens %arg12, %result_token_19 : token
    if %4 {
      %cst_1_i32_26 = constant <i32: 1> : tile<i32>
      break %tile, %cst_1_i32_26, %8 : tile<16xf32>, tile<i32>, token
    } else {
    }
    break %tile, %cst_1_i32_20, %8 : tile<16xf32>, tile<i32>, token
  }
  %cst_0_f32_23 = constant <f32: 0.000000e+00> : tile<16xf32>
  %pview_24 = make_partition_view %tview_3 : partition_view<tile=(16), tensor_view<?xf32, strides=[1]>>
  %6 = store_view_tko weak %cst_0_f32_23, %pview_24[%5#1] token = %3 : tile<16xf32>, partition_view<tile=(16), tensor_view<?xf32, strides=[1]>>, tile<i32> -> token
  %pview_25 = make_partition_view %tview : partition_view<tile=(16), tensor_view<?xf32, strides=[1]>>
  %7 = store_view_tko weak %5#0, %pview_25[%5#1] token = %5#2 : tile<16xf32>, partition_view<tile=(16), tensor_view<?xf32, strides=[1]>>, tile<i32> -> token
  return
}

