//! What a call would launch, as JSON: what `cutile_kernels_last_plan` returns after a dry run.
//!
//! The keys are those of the compile inputs of a check, so that a test can compare the two.

use std::fmt::Write as _;

use super::call::Call;
use super::choose::Chosen;
use super::facts::array_facts;
use super::table::Param;

/// Describes what would be compiled and launched.
pub fn describe(call: &Call<'_>, chosen: &Chosen) -> String {
    let mut strides = Vec::new();
    let mut specs = Vec::new();
    for param in chosen.entry.params {
        if let Param::List { name, rank, .. } = param {
            strides.push(format!("[\"{name}\", [{}, 1]]", 1 + 2 * rank));
        }
        let Some((name, facts)) = array_facts(call, param, &chosen.generics) else { continue };
        strides.push(format!("[\"{name}\", {:?}]", facts.strides));
        specs.push(format!("[\"{name}\", {:?}, {:?}, {}]", facts.shape_div, facts.stride_div, facts.base_div));
    }
    let generics: Vec<_> = chosen.generics.iter().map(|value| format!("\"{}\"", value.text())).collect();
    let mut text = String::from("{");
    let _ = write!(text, "\"entry\": \"{}\", \"generics\": [{}]", chosen.entry.name, generics.join(", "));
    let _ = write!(text, ", \"strides\": [{}], \"specs\": [{}]", strides.join(", "), specs.join(", "));
    let _ = write!(text, ", \"scalar_hints\": []");
    let launch = call.launch;
    for (name, value) in
        [("occupancy", launch.occupancy), ("num_ctas", launch.num_ctas), ("num_worker_warps", launch.num_worker_warps)]
    {
        let value = if value == 0 { "null".to_owned() } else { value.to_string() };
        let _ = write!(text, ", \"{name}\": {value}");
    }
    text.push('}');
    text
}
