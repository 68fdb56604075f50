entry @ordered(%arg0: tile<ptr<i32>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<ptr<i32>>, %arg4: tile<i32>, %arg5: tile<i32>, %arg6: tile<i32>) optimization_hints=<default = {}> {
  %0 = make_token : token
  %assume = assume div_by<16>, %arg0 : tile<ptr<i32>>
  %assume_0 = assume div_by<16>, %arg1 : tile<i32>
  %assume_1 = assume div_by<16>, %arg3 : tile<ptr<i32>>
  %cst_1_i32 = constant <i32: 1> : tile<i32>
  %cst_1_i32_2 = constant <i32: 1> : tile<16xi32>
  %cst_1_i64 = constant <i64: 1> : tile<16xi64>
  %cst_1_i64_3 = constant <i64: 1> : tile<16xi64>
  %assume_assume = assume bounded<0, ?>, %assume_0 : tile<i32>
  %assume_assume_assume = assume div_by<16>, %assume_assume : tile<i32>
  %tview = make_tensor_view %assume, shape = [%assume_assume_assume], strides = [1] : tile<i32> -> tensor_view<?xi32, strides=[1]>
  %assume_4 = assume bounded<0, ?>, %arg4 : tile<i32>
  %1 = iota : tile<16xi32>
  %cst_0_i32 = constant <i32: 0> : tile<i32>
  %pview = make_partition_view %tview : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>
  %tile, %result_token = load_view_tko weak %pview[%cst_0_i32] token = %0 : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>, tile<i32> -> tile<16xi32>, token
  %2 = join_tokens %0, %result_token : token
  %cst_1_i32_5 = constant <i32: 1> : tile<i32>
  %3 = addi %tile, %cst_1_i32_2 : tile<16xi32>
  %pview_6 = make_partition_view %tview : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>
  %4 = store_view_tko weak %3, %pview_6[%cst_1_i32_5] token = %2 : tile<16xi32>, partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>, tile<i32> -> token
  %cst_1_i32_7 = constant <i32: 1> : tile<i32>
  %pview_8 = make_partition_view %tview : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>
  %tile_9, %result_token_10 = load_view_tko weak %pview_8[%cst_1_i32_7] token = %4 : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>, tile<i32> -> tile<16xi32>, token
  %5 = join_tokens %4, %result_token_10 : token
  %6 = exti %1 signed : tile<16xi32> -> tile<16xi64>
  %7 = exti %assume_4 signed : tile<i32> -> tile<i64>
  %reshape = reshape %7 : tile<i64> -> tile<1xi64>
  %bcast = broadcast %reshape : tile<1xi64> -> tile<16xi64>
  %8 = cmpi less_than %6, %bcast, unsigned : tile<16xi64> -> tile<16xi1>
  %9 = muli %6, %cst_1_i64 : tile<16xi64>
  %reshape_11 = reshape %assume_1 : tile<ptr<i32>> -> tile<1xptr<i32>>
  %bcast_12 = broadcast %reshape_11 : tile<1xptr<i32>> -> tile<16xptr<i32>>
  %10 = offset %bcast_12, %9 : tile<16xptr<i32>>, tile<16xi64> -> tile<16xptr<i32>>
  %11 = join_tokens %0, %5 : token
  %result, %result_token_13 = atomic_rmw_tko acq_rel device %10, add, %tile_9, %8 token=%11 : tile<16xptr<i32>>, tile<16xi32>, tile<16xi1> -> tile<16xi32>, token
  %12 = exti %1 signed : tile<16xi32> -> tile<16xi64>
  %13 = exti %assume_4 signed : tile<i32> -> tile<i64>
  %reshape_14 = reshape %13 : tile<i64> -> tile<1xi64>
  %bcast_15 = broadcast %reshape_14 : tile<1xi64> -> tile<16xi64>
  %14 = cmpi less_than %12, %bcast_15, unsigned : tile<16xi64> -> tile<16xi1>
  %15 = muli %12, %cst_1_i64_3 : tile<16xi64>
  %reshape_16 = reshape %assume_1 : tile<ptr<i32>> -> tile<1xptr<i32>>
  %bcast_17 = broadcast %reshape_16 : tile<1xptr<i32>> -> tile<16xptr<i32>>
  %16 = offset %bcast_17, %15 : tile<16xptr<i32>>, tile<16xi64> -> tile<16xptr<i32>>
  %result_18, %result_token_19 = atomic_rmw_tko relaxed device %16, max, %result, %14 token=%result_token_13 : tile<16xptr<i32>>, tile<16xi32>, tile<16xi1> -> tile<16xi32>, token
  %cst_0_i32_20 = constant <i32: 0> : tile<i32>
  %cst_1_i32_21 = constant <i32: 1> : tile<i32>
  %cst_2_i32 = constant <i32: 2> : tile<i32>
  %cst_2_i32_22 = constant <i32: 2> : tile<i32>
  %pview_23 = make_partition_view %tview : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>
  %pview_24 = make_partition_view %tview : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>
  %for:2 = for %loopIdx in (%cst_0_i32_20 to %arg6, step %cst_1_i32_21) : tile<i32> iter_values(%iterArg0 = %5, %iterArg1 = %4) -> (token, token) {
    %23 = join_tokens %iterArg1, %result_token_13 : token
    %tile_30, %result_token_31 = load_view_tko weak %pview_23[%cst_2_i32_22] token = %23 : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>, tile<i32> -> tile<16xi32>, token
    %24 = join_tokens %iterArg0, %result_token_31 : token
    %25 = addi %tile_30, %tile : tile<16xi32>
    %26 = join_tokens %24, %result_token_13 : token
    %27 = store_view_tko weak %25, %pview_24[%cst_2_i32] token = %26 : tile<16xi32>, partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>, tile<i32> -> token
    continue %27, %27 : token, token
  }
  %17 = join_tokens %0, %for#0, %result_token_19, %result_token_13 : token
  %18 = print_tko "%d", %arg6 token=%17 : tile<i32> -> token
  %cst_3_i32 = constant <i32: 3> : tile<i32>
  %cst_0_i32_25 = constant <i32: 0> : tile<i32>
  %pview_26 = make_partition_view %tview : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>
  %19 = join_tokens %for#1, %result_token_13, %18 : token
  %tile_27, %result_token_28 = load_view_tko acquire device %pview_26[%cst_0_i32_25] token = %19 : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>, tile<i32> -> tile<16xi32>, token
  %20 = join_tokens %for#0, %result_token_28 : token
  %pview_29 = make_partition_view %tview : partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>
  %21 = join_tokens %20, %result_token_28, %18 : token
  %22 = store_view_tko weak %tile_27, %pview_29[%cst_3_i32] token = %21 : tile<16xi32>, partition_view<tile=(16), tensor_view<?xi32, strides=[1]>>, tile<i32> -> token
  return
}
