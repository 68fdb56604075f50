entry @control_entry(%arg0: tile<ptr<i32>>, %arg1: tile<i32>, %arg2: tile<i32>, %arg3: tile<i32>, %arg4: tile<i32>) {
  %cst_4_i32 = constant <i32: 4> : tile<i32> loc(#loc52)
  %cst_4_i32_0 = constant <i32: 4> : tile<i32> loc(#loc102)
  %0 = make_token : token loc(#loc103)
  %assume = assume div_by<16>, %arg0 : tile<ptr<i32>> loc(#loc104)
  %assume_1 = assume div_by<16>, %arg1 : tile<i32> loc(#loc105)
  %assume_assume = assume bounded<0, ?>, %assume_1 : tile<i32> loc(#loc106)
  %1 = cmpi greater_than %arg3, %arg4, signed : tile<i32> -> tile<i1> loc(#loc107)
  if %1 {
  } else {
    %cst_0_i32 = constant <i32: 0> : tile<i32> loc(#loc109)
    %cst_2_i32 = constant <i32: 2> : tile<i32> loc(#loc110)
    %cst_2_i32_2 = constant <i32: 2> : tile<i32> loc(#loc111)
    %for = for %loopIdx in (%cst_2_i32 to %arg3, step %cst_2_i32_2) : tile<i32> iter_values(%iterArg0 = %cst_0_i32) -> (tile<i32>) {
      %reshape = reshape %cst_4_i32_0 : tile<i32> -> tile<i32> loc(#loc149)
      %5 = cmpi equal %loopIdx, %reshape, signed : tile<i32> -> tile<i1> loc(#loc114)
      %6 = if %5 -> (tile<i32>) {
        yield %iterArg0 : tile<i32> loc(#loc116)
      } else {
        %cst_0_i32_4 = constant <i32: 0> : tile<i32> loc(#loc117)
        %cst_1_i32 = constant <i32: 1> : tile<i32> loc(#loc102)
        %for_5 = for %loopIdx_6 in (%cst_0_i32_4 to %arg3, step %cst_1_i32) : tile<i32> iter_values(%iterArg0_7 = %iterArg0) -> (tile<i32>) {
          %8 = muli %loopIdx_6, %loopIdx : tile<i32> loc(#loc119)
          %9 = addi %iterArg0_7, %8 : tile<i32> loc(#loc120)
          continue %9 : tile<i32> loc(#loc121)
        } loc(#loc118)
        %7 = addi %for_5, %loopIdx : tile<i32> loc(#loc122)
        yield %7 : tile<i32> loc(#loc123)
      } loc(#loc115)
      continue %6 : tile<i32> loc(#loc124)
    } loc(#loc112)
    %2 = loop iter_values(%arg5 = %for) : tile<i32> -> tile<i32> {
      %5 = cmpi greater_than %arg5, %arg4, signed : tile<i32> -> tile<i1> loc(#loc126)
      if %5 {
      } else {
        break %arg5 : tile<i32> loc(#loc125)
      } loc(#loc127)
      %cst_2_i32_4 = constant <i32: 2> : tile<i32> loc(#loc128)
      %6 = divi %arg5, %cst_2_i32_4 signed rounding<negative_inf> : tile<i32> loc(#loc129)
      continue %6 : tile<i32> loc(#loc130)
    } loc(#loc125)
    %3 = exti %assume_assume signed : tile<i32> -> tile<i64> loc(#loc131)
    %cst_0_i32_3 = constant <i32: 0> : tile<i32> loc(#loc132)
    %4 = cmpi greater_than %2, %cst_0_i32_3, signed : tile<i32> -> tile<i1> loc(#loc133)
    if %4 {
      %cst_0_i64 = constant <i64: 0> : tile<i64> loc(#loc135)
      %5 = cmpi less_than %cst_0_i64, %3, unsigned : tile<i64> -> tile<i1> loc(#loc136)
      %cst_1_i64 = constant <i64: 1> : tile<i64> loc(#loc137)
      %6 = muli %cst_0_i64, %cst_1_i64 : tile<i64> loc(#loc138)
      %7 = offset %assume, %6 : tile<ptr<i32>>, tile<i64> -> tile<ptr<i32>> loc(#loc139)
      %assume_4 = assume div_by<16>, %7 : tile<ptr<i32>> loc(#loc140)
      %8 = store_ptr_tko weak %assume_4, %2, %5 token=%0 : tile<ptr<i32>>, tile<i32>, tile<i1> -> token loc(#loc141)
    } else {
      %cst_1_i64 = constant <i64: 1> : tile<i64> loc(#loc142)
      %5 = cmpi less_than %cst_1_i64, %3, unsigned : tile<i64> -> tile<i1> loc(#loc143)
      %cst_1_i64_4 = constant <i64: 1> : tile<i64> loc(#loc144)
      %6 = muli %cst_1_i64, %cst_1_i64_4 : tile<i64> loc(#loc145)
      %7 = offset %assume, %6 : tile<ptr<i32>>, tile<i64> -> tile<ptr<i32>> loc(#loc146)
      %assume_5 = assume div_by<4>, %7 : tile<ptr<i32>> loc(#loc147)
      %8 = store_ptr_tko weak %assume_5, %arg3, %5 token=%0 : tile<ptr<i32>>, tile<i32>, tile<i1> -> token loc(#loc148)
    } loc(#loc134)
  } loc(#loc108)
  return loc(#loc101)
} loc(#loc51)
#di_file = #cuda_tile.di_file<"kernel.rs" in "">
#loc = loc("kernel.rs":71:8)
#loc1 = loc("kernel.rs":71:18)
#loc2 = loc("kernel.rs":71:0)
#loc3 = loc("kernel.rs":72:27)
#loc4 = loc("kernel.rs":74:56)
#loc5 = loc("kernel.rs":76:82)
#loc6 = loc("kernel.rs":76:45)
#loc7 = loc("kernel.rs":79:39)
#loc8 = loc("kernel.rs":80:11)
#loc9 = loc("kernel.rs":82:47)
#loc10 = loc("kernel.rs":83:28)
#loc11 = loc("kernel.rs":83:67)
#loc12 = loc("kernel.rs":83:12)
#loc13 = loc("kernel.rs":23:89)
#loc14 = loc("kernel.rs":85:46)
#loc15 = loc("kernel.rs":86:44)
#loc16 = loc("kernel.rs":87:19)
#loc17 = loc("kernel.rs":87:30)
#loc18 = loc("kernel.rs":89:35)
#loc19 = loc("kernel.rs":89:20)
#loc20 = loc("kernel.rs":91:40)
#loc21 = loc("kernel.rs":91:32)
#loc22 = loc("kernel.rs":89:59)
#loc23 = loc("kernel.rs":93:28)
#loc24 = loc("kernel.rs":88:23)
#loc25 = loc("kernel.rs":83:91)
#loc26 = loc("kernel.rs":96:12)
#loc27 = loc("kernel.rs":96:26)
#loc28 = loc("kernel.rs":96:18)
#loc29 = loc("kernel.rs":97:36)
#loc30 = loc("kernel.rs":97:24)
#loc31 = loc("kernel.rs":96:49)
#loc32 = loc("kernel.rs":99:41)
#loc33 = loc("kernel.rs":100:57)
#loc34 = loc("kernel.rs":100:42)
#loc35 = loc("kernel.rs":101:15)
#loc36 = loc("kernel.rs":102:43)
#loc37 = loc("kernel.rs":103:47)
#loc38 = loc("kernel.rs":104:45)
#loc39 = loc("kernel.rs":105:69)
#loc40 = loc("kernel.rs":105:55)
#loc41 = loc("kernel.rs":106:64)
#loc42 = loc("kernel.rs":107:41)
#loc43 = loc("kernel.rs":109:43)
#loc44 = loc("kernel.rs":110:47)
#loc45 = loc("kernel.rs":111:45)
#loc46 = loc("kernel.rs":112:69)
#loc47 = loc("kernel.rs":112:55)
#loc48 = loc("kernel.rs":113:64)
#loc49 = loc("kernel.rs":114:41)
#loc50 = loc("kernel.rs":71:94)
#di_compile_unit = #cuda_tile.di_compile_unit<file = #di_file>
#di_subprogram = #cuda_tile.di_subprogram<file = #di_file, line = 71, name = "control", linkageName = "control_entry", compileUnit = #di_compile_unit, scopeLine = 71>
#di_subprogram1 = #cuda_tile.di_subprogram<file = #di_file, line = 71, name = "control", linkageName = "control@kernel:71:18", compileUnit = #di_compile_unit, scopeLine = 71>
#di_subprogram2 = #cuda_tile.di_subprogram<file = #di_file, line = 23, name = "size", linkageName = "size@kernel:23:7", compileUnit = #di_compile_unit, scopeLine = 23>
#loc51 = #cuda_tile.di_loc<#loc in #di_subprogram>
#loc52 = #cuda_tile.di_loc<#loc1 in #di_subprogram>
#loc53 = #cuda_tile.di_loc<#loc2 in #di_subprogram1>
#loc54 = #cuda_tile.di_loc<#loc3 in #di_subprogram1>
#loc55 = #cuda_tile.di_loc<#loc4 in #di_subprogram1>
#loc56 = #cuda_tile.di_loc<#loc5 in #di_subprogram1>
#loc57 = #cuda_tile.di_loc<#loc6 in #di_subprogram1>
#loc58 = #cuda_tile.di_loc<#loc7 in #di_subprogram1>
#loc59 = #cuda_tile.di_loc<#loc8 in #di_subprogram1>
#loc60 = #cuda_tile.di_loc<#loc9 in #di_subprogram1>
#loc61 = #cuda_tile.di_loc<#loc10 in #di_subprogram1>
#loc62 = #cuda_tile.di_loc<#loc11 in #di_subprogram1>
#loc63 = #cuda_tile.di_loc<#loc12 in #di_subprogram1>
#loc64 = #cuda_tile.di_loc<#loc13 in #di_subprogram2>
#loc65 = #cuda_tile.di_loc<#loc14 in #di_subprogram1>
#loc66 = #cuda_tile.di_loc<#loc15 in #di_subprogram1>
#loc67 = #cuda_tile.di_loc<#loc16 in #di_subprogram1>
#loc68 = #cuda_tile.di_loc<#loc17 in #di_subprogram1>
#loc69 = #cuda_tile.di_loc<#loc18 in #di_subprogram1>
#loc70 = #cuda_tile.di_loc<#loc19 in #di_subprogram1>
#loc71 = #cuda_tile.di_loc<#loc20 in #di_subprogram1>
#loc72 = #cuda_tile.di_loc<#loc21 in #di_subprogram1>
#loc73 = #cuda_tile.di_loc<#loc22 in #di_subprogram1>
#loc74 = #cuda_tile.di_loc<#loc23 in #di_subprogram1>
#loc75 = #cuda_tile.di_loc<#loc24 in #di_subprogram1>
#loc76 = #cuda_tile.di_loc<#loc25 in #di_subprogram1>
#loc77 = #cuda_tile.di_loc<#loc26 in #di_subprogram1>
#loc78 = #cuda_tile.di_loc<#loc27 in #di_subprogram1>
#loc79 = #cuda_tile.di_loc<#loc28 in #di_subprogram1>
#loc80 = #cuda_tile.di_loc<#loc29 in #di_subprogram1>
#loc81 = #cuda_tile.di_loc<#loc30 in #di_subprogram1>
#loc82 = #cuda_tile.di_loc<#loc31 in #di_subprogram1>
#loc83 = #cuda_tile.di_loc<#loc32 in #di_subprogram1>
#loc84 = #cuda_tile.di_loc<#loc33 in #di_subprogram1>
#loc85 = #cuda_tile.di_loc<#loc34 in #di_subprogram1>
#loc86 = #cuda_tile.di_loc<#loc35 in #di_subprogram1>
#loc87 = #cuda_tile.di_loc<#loc36 in #di_subprogram1>
#loc88 = #cuda_tile.di_loc<#loc37 in #di_subprogram1>
#loc89 = #cuda_tile.di_loc<#loc38 in #di_subprogram1>
#loc90 = #cuda_tile.di_loc<#loc39 in #di_subprogram1>
#loc91 = #cuda_tile.di_loc<#loc40 in #di_subprogram1>
#loc92 = #cuda_tile.di_loc<#loc41 in #di_subprogram1>
#loc93 = #cuda_tile.di_loc<#loc42 in #di_subprogram1>
#loc94 = #cuda_tile.di_loc<#loc43 in #di_subprogram1>
#loc95 = #cuda_tile.di_loc<#loc44 in #di_subprogram1>
#loc96 = #cuda_tile.di_loc<#loc45 in #di_subprogram1>
#loc97 = #cuda_tile.di_loc<#loc46 in #di_subprogram1>
#loc98 = #cuda_tile.di_loc<#loc47 in #di_subprogram1>
#loc99 = #cuda_tile.di_loc<#loc48 in #di_subprogram1>
#loc100 = #cuda_tile.di_loc<#loc49 in #di_subprogram1>
#loc101 = #cuda_tile.di_loc<#loc50 in #di_subprogram>
#loc102 = loc(callsite(#loc53 at #loc51))
#loc103 = loc(callsite(#loc54 at #loc51))
#loc104 = loc(callsite(#loc55 at #loc51))
#loc105 = loc(callsite(#loc56 at #loc51))
#loc106 = loc(callsite(#loc57 at #loc51))
#loc107 = loc(callsite(#loc58 at #loc51))
#loc108 = loc(callsite(#loc59 at #loc51))
#loc109 = loc(callsite(#loc60 at #loc51))
#loc110 = loc(callsite(#loc61 at #loc51))
#loc111 = loc(callsite(#loc62 at #loc51))
#loc112 = loc(callsite(#loc63 at #loc51))
#loc113 = loc(callsite(#loc65 at #loc51))
#loc114 = loc(callsite(#loc66 at #loc51))
#loc115 = loc(callsite(#loc67 at #loc51))
#loc116 = loc(callsite(#loc68 at #loc51))
#loc117 = loc(callsite(#loc69 at #loc51))
#loc118 = loc(callsite(#loc70 at #loc51))
#loc119 = loc(callsite(#loc71 at #loc51))
#loc120 = loc(callsite(#loc72 at #loc51))
#loc121 = loc(callsite(#loc73 at #loc51))
#loc122 = loc(callsite(#loc74 at #loc51))
#loc123 = loc(callsite(#loc75 at #loc51))
#loc124 = loc(callsite(#loc76 at #loc51))
#loc125 = loc(callsite(#loc77 at #loc51))
#loc126 = loc(callsite(#loc78 at #loc51))
#loc127 = loc(callsite(#loc79 at #loc51))
#loc128 = loc(callsite(#loc80 at #loc51))
#loc129 = loc(callsite(#loc81 at #loc51))
#loc130 = loc(callsite(#loc82 at #loc51))
#loc131 = loc(callsite(#loc83 at #loc51))
#loc132 = loc(callsite(#loc84 at #loc51))
#loc133 = loc(callsite(#loc85 at #loc51))
#loc134 = loc(callsite(#loc86 at #loc51))
#loc135 = loc(callsite(#loc87 at #loc51))
#loc136 = loc(callsite(#loc88 at #loc51))
#loc137 = loc(callsite(#loc89 at #loc51))
#loc138 = loc(callsite(#loc90 at #loc51))
#loc139 = loc(callsite(#loc91 at #loc51))
#loc140 = loc(callsite(#loc92 at #loc51))
#loc141 = loc(callsite(#loc93 at #loc51))
#loc142 = loc(callsite(#loc94 at #loc51))
#loc143 = loc(callsite(#loc95 at #loc51))
#loc144 = loc(callsite(#loc96 at #loc51))
#loc145 = loc(callsite(#loc97 at #loc51))
#loc146 = loc(callsite(#loc98 at #loc51))
#loc147 = loc(callsite(#loc99 at #loc51))
#loc148 = loc(callsite(#loc100 at #loc51))
#loc149 = loc(callsite(#loc64 at #loc113))
