pub mod table { pub fn run(_e:&crate::experiment::Experiment,_p:&crate::plan::Plan,_s:&crate::summary::Summary,_r:&[crate::record::TrialRecord])->String{String::new()} }
