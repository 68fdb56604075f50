entry @control(%arg0: tile<ptr<i32>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<i32>, %arg4: tile<i32>) optimization_hints=<default = {}> {
  %0 = make_token : token
  %assume = assume div_by<16>, %arg0 : tile<ptr<i32>>
  %assume_0 = assume div_by<16>, %arg1 : tile<i32>
  %cst_1_i64 = constant <i64: 1> : tile<i64>
  %cst_1_i64_1 = constant <i64: 1> : tile<i64>
  %assume_assume = assume bounded<0, ?>, %assume_0 : tile<i32>
  %cst_4_i32 = constant <i32: 4> : tile<i32>
  %1 = cmpi greater_than %arg3, %arg4, signed : tile<i32> -> tile<i1>
  if %1 {
    return
  } else {
  }
  %cst_0_i32 = constant <i32: 0> : tile<i32>
  %cst_2_i32 = constant <i32: 2> : tile<i32>
  %cst_2_i32_2 = constant <i32: 2> : tile<i32>
  %cst_0_i32_3 = constant <i32: 0> : tile<i32>
  %cst_1_i32 = constant <i32: 1> : tile<i32>
  %for = for %loopIdx in (%cst_2_i32 to %arg3, step %cst_2_i32_2) : tile<i32> iter_values(%iterArg0 = %cst_0_i32) -> (tile<i32>) {
    %4 = cmpi equal %loopIdx, %cst_4_i32, signed : tile<i32> -> tile<i1>
    if %4 {
      continue %iterArg0 : tile<i32>
    } else {
    }
    %for_6 = for %loopIdx_7 in (%cst_0_i32_3 to %arg3, step %cst_1_i32) : tile<i32> iter_values(%iterArg0_8 = %iterArg0) -> (tile<i32>) {
      %6 = muli %loopIdx_7, %loopIdx : tile<i32>
      %7 = addi %iterArg0_8, %6 : tile<i32>
      continue %7 : tile<i32>
    }
    %5 = addi %for_6, %loopIdx : tile<i32>
    continue %5 : tile<i32>
  }
  %cst_2_i32_4 = constant <i32: 2> : tile<i32>
  %2 = loop iter_values(%arg5 = %for) : tile<i32> -> tile<i32> {
    %4 = cmpi greater_than %arg5, %arg4, signed : tile<i32> -> tile<i1>
    if %4 {
    } else {
      break %arg5 : tile<i32>
    }
    %5 = divi %arg5, %cst_2_i32_4 signed rounding<negative_inf> : tile<i32>
    continue %5 : tile<i32>
  }
  %cst_0_i32_5 = constant <i32: 0> : tile<i32>
  %3 = cmpi greater_than %2, %cst_0_i32_5, signed : tile<i32> -> tile<i1>
  if %3 {
    %cst_0_i64 = constant <i64: 0> : tile<i64>
    %4 = exti %assume_assume signed : tile<i32> -> tile<i64>
    %5 = cmpi less_than %cst_0_i64, %4, unsigned : tile<i64> -> tile<i1>
    %6 = muli %cst_0_i64, %cst_1_i64 : tile<i64>
    %7 = offset %assume, %6 : tile<ptr<i32>>, tile<i64> -> tile<ptr<i32>>
    %assume_6 = assume div_by<16>, %7 : tile<ptr<i32>>
    %8 = store_ptr_tko weak %assume_6, %2, %5 token=%0 : tile<ptr<i32>>, tile<i32>, tile<i1> -> token
  } else {
    %cst_1_i64_6 = constant <i64: 1> : tile<i64>
    %4 = exti %assume_assume signed : tile<i32> -> tile<i64>
    %5 = cmpi less_than %cst_1_i64_6, %4, unsigned : tile<i64> -> tile<i1>
    %6 = muli %cst_1_i64_6, %cst_1_i64_1 : tile<i64>
    %7 = offset %assume, %6 : tile<ptr<i32>>, tile<i64> -> tile<ptr<i32>>
    %assume_7 = assume div_by<4>, %7 : tile<ptr<i32>>
    %8 = store_ptr_tko weak %assume_7, %arg3, %5 token=%0 : tile<ptr<i32>>, tile<i32>, tile<i1> -> token
  }
  return
}
