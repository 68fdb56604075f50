entry @mixed(%arg0: tile<ptr<f32>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<i32>, %arg4: tile<i32>, %arg5: tile<ptr<f16>>, %arg6: tile<i32>, %arg7: tile<i32>, %arg8: tile<i32>, %arg9: tile<i32>, %arg10: tile<ptr<i8>>, %arg11: tile<i32>, %arg12: tile<i32>, %arg13: tile<i32>, %arg14: tile<i32>, %arg15: tile<i32>) optimization_hints=<default = {}> {
  %0 = make_token : token
  %assume = assume div_by<16>, %arg0 : tile<ptr<f32>>
  %assume_0 = assume div_by<16>, %arg1 : tile<i32>
  %assume_1 = assume div_by<16>, %arg2 : tile<i32>
  %assume_2 = assume div_by<16>, %arg3 : tile<i32>
  %assume_3 = assume div_by<16>, %arg5 : tile<ptr<f16>>
  %assume_4 = assume div_by<16>, %arg6 : tile<i32>
  %assume_5 = assume div_by<16>, %arg7 : tile<i32>
  %assume_6 = assume div_by<16>, %arg8 : tile<i32>
  %assume_7 = assume div_by<16>, %arg10 : tile<ptr<i8>>
  %assume_8 = assume div_by<16>, %arg11 : tile<i32>
  %assume_9 = assume div_by<16>, %arg12 : tile<i32>
  %assume_10 = assume div_by<16>, %arg13 : tile<i32>
  %cst_1_i32 = constant <i32: 1> : tile<i32>
  %cst_1_i32_11 = constant <i32: 1> : tile<i32>
  %cst_1_i32_12 = constant <i32: 1> : tile<i32>
  %cst_2_i32 = constant <i32: 2> : tile<4x16xi32>
  %cst_1_i32_13 = constant <i32: 1> : tile<4x16xi32>
  %assume_assume = assume bounded<0, ?>, %assume_0 : tile<i32>
  %assume_assume_assume = assume div_by<16>, %assume_assume : tile<i32>
  %assume_assume_14 = assume bounded<0, ?>, %assume_1 : tile<i32>
  %assume_assume_assume_15 = assume div_by<16>, %assume_assume_14 : tile<i32>
  %assume_assume_16 = assume bounded<0, ?>, %assume_2 : tile<i32>
  %assume_assume_assume_17 = assume div_by<16>, %assume_assume_16 : tile<i32>
  %tview = make_tensor_view %assume, shape = [%assume_assume_assume, %assume_assume_assume_15], strides = [%assume_assume_assume_17, 1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
  %assume_assume_18 = assume bounded<0, ?>, %assume_4 : tile<i32>
  %assume_assume_assume_19 = assume div_by<16>, %assume_assume_18 : tile<i32>
  %assume_assume_20 = assume bounded<0, ?>, %assume_5 : tile<i32>
  %assume_assume_assume_21 = assume div_by<16>, %assume_assume_20 : tile<i32>
  %assume_assume_22 = assume bounded<0, ?>, %assume_6 : tile<i32>
  %assume_assume_assume_23 = assume div_by<16>, %assume_assume_22 : tile<i32>
  %tview_24 = make_tensor_view %assume_3, shape = [%assume_assume_assume_19, %assume_assume_assume_21], strides = [%assume_assume_assume_23, 1] : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]>
  %assume_assume_25 = assume bounded<0, ?>, %assume_8 : tile<i32>
  %assume_assume_assume_26 = assume div_by<16>, %assume_assume_25 : tile<i32>
  %assume_assume_27 = assume bounded<0, ?>, %assume_9 : tile<i32>
  %assume_assume_assume_28 = assume div_by<16>, %assume_assume_27 : tile<i32>
  %assume_assume_29 = assume bounded<0, ?>, %assume_10 : tile<i32>
  %assume_assume_assume_30 = assume div_by<16>, %assume_assume_29 : tile<i32>
  %tview_31 = make_tensor_view %assume_7, shape = [%assume_assume_assume_26, %assume_assume_assume_28], strides = [%assume_assume_assume_30, 1] : tile<i32> -> tensor_view<?x?xi8, strides=[?,1]>
  %cst_0_i32 = constant <i32: 0> : tile<i32>
  %cst_0_i32_32 = constant <i32: 0> : tile<i32>
  %pview = make_partition_view %tview : partition_view<tile=(4x16), tensor_view<?x?xf32, strides=[?,1]>>
  %tile, %result_token = load_view_tko weak %pview[%cst_0_i32, %cst_0_i32_32] token = %0 : partition_view<tile=(4x16), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32> -> tile<4x16xf32>, token
  %1 = join_tokens %0, %result_token : token
  %2 = scan %tile dim=1 reverse=false identities=[0.000000e+00 : f32] : tile<4x16xf32> -> tile<4x16xf32> 
  (%arg16: tile<f32>, %arg17: tile<f32>) {
    %34 = addf %arg16, %arg17  : tile<f32>
    yield %34 : tile<f32>
  }
  %3 = minf %tile, %2 : tile<4x16xf32>
  %cst_f32 = constant <f32: 5.000000e-01> : tile<f32>
  %reshape = reshape %cst_f32 : tile<f32> -> tile<1x1xf32>
  %bcast = broadcast %reshape : tile<1x1xf32> -> tile<4x16xf32>
  %4 = maxf %3, %bcast : tile<4x16xf32>
  %5 = cmpf not_equal unordered %4, %2 : tile<4x16xf32> -> tile<4x16xi1>
  %6 = absf %4 : tile<4x16xf32>
  %7 = floor %2 : tile<4x16xf32>
  %8 = select %5, %6, %7 : tile<4x16xi1>, tile<4x16xf32>
  %cst_3_i32 = constant <i32: 3> : tile<i32>
  %9 = divi %arg15, %cst_3_i32 signed rounding<negative_inf> : tile<i32>
  %10 = itof %9 signed  : tile<i32> -> tile<f32>
  %reshape_33 = reshape %10 : tile<f32> -> tile<1x1xf32>
  %bcast_34 = broadcast %reshape_33 : tile<1x1xf32> -> tile<4x16xf32>
  %11 = addf %8, %bcast_34  : tile<4x16xf32>
  %cst_5_i32 = constant <i32: 5> : tile<i32>
  %12 = remi %arg15, %cst_5_i32 signed : tile<i32>
  %cst_0_i32_35 = constant <i32: 0> : tile<i32>
  %13 = cmpi less_than %12, %cst_0_i32_35, signed : tile<i32> -> tile<i1>
  %false = constant <i1: false> : tile<i1>
  %14 = xori %13, %false : tile<i1>
  %15 = cmpi not_equal %12, %cst_0_i32_35, signed : tile<i32> -> tile<i1>
  %16 = andi %14, %15 : tile<i1>
  %17 = addi %12, %cst_5_i32 : tile<i32>
  %18 = select %16, %17, %12 : tile<i1>, tile<i32>
  %19 = itof %18 signed  : tile<i32> -> tile<f32>
  %reshape_36 = reshape %19 : tile<f32> -> tile<1x1xf32>
  %bcast_37 = broadcast %reshape_36 : tile<1x1xf32> -> tile<4x16xf32>
  %20 = addf %11, %bcast_37  : tile<4x16xf32>
  %21 = permute %20 [1, 0] : tile<4x16xf32> -> tile<16x4xf32>
  %cst_1_i32_38 = constant <i32: 1> : tile<i32>
  %cst_0_i32_39 = constant <i32: 0> : tile<i32>
  %22 = extract %21[%cst_1_i32_38, %cst_0_i32_39] : tile<16x4xf32> -> tile<8x4xf32>
  %cst_0_i32_40 = constant <i32: 0> : tile<i32>
  %cst_0_i32_41 = constant <i32: 0> : tile<i32>
  %23 = cat %22, %22 dim = 0 : tile<8x4xf32>, tile<8x4xf32> -> tile<16x4xf32>
  %24 = ftof %23  : tile<16x4xf32> -> tile<16x4xf16>
  %pview_42 = make_partition_view %tview_24 : partition_view<tile=(16x4), tensor_view<?x?xf16, strides=[?,1]>>
  %25 = store_view_tko weak %24, %pview_42[%cst_0_i32_40, %cst_0_i32_41] token = %0 : tile<16x4xf16>, partition_view<tile=(16x4), tensor_view<?x?xf16, strides=[?,1]>>, tile<i32> -> token
  %26 = ftoi %20 signed  : tile<4x16xf32> -> tile<4x16xi32>
  %27 = shli %26, %cst_2_i32 : tile<4x16xi32>
  %cst_0_i32_43 = constant <i32: 0> : tile<i32>
  %cst_0_i32_44 = constant <i32: 0> : tile<i32>
  %28 = shri %27, %cst_1_i32_13 signed : tile<4x16xi32>
  %29 = trunci %28 : tile<4x16xi32> -> tile<4x16xi8>
  %pview_45 = make_partition_view %tview_31 : partition_view<tile=(4x16), tensor_view<?x?xi8, strides=[?,1]>>
  %30 = store_view_tko weak %29, %pview_45[%cst_0_i32_43, %cst_0_i32_44] token = %0 : tile<4x16xi8>, partition_view<tile=(4x16), tensor_view<?x?xi8, strides=[?,1]>>, tile<i32> -> token
  %cst_1_i32_46 = constant <i32: 1> : tile<i32>
  %cst_0_i32_47 = constant <i32: 0> : tile<i32>
  %31 = addf %tile, %20 rounding<positive_inf> : tile<4x16xf32>
  %pview_48 = make_partition_view %tview : partition_view<tile=(4x16), tensor_view<?x?xf32, strides=[?,1]>>
  %32 = store_view_tko weak %31, %pview_48[%cst_1_i32_46, %cst_0_i32_47] token = %1 : tile<4x16xf32>, partition_view<tile=(4x16), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32> -> token
  %cst_3_i32_49 = constant <i32: 3> : tile<i32>
  %33 = cmpi greater_than %arg15, %cst_3_i32_49, signed : tile<i32> -> tile<i1>
  assert %33, "n is small" : tile<i1>
  return
}
