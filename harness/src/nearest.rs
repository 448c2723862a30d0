//! "Unknown name" messages that name the nearest valid ones.

/// `did you mean a or b?` if some of `known` are near, else the whole list. Text for the end of an error message.
pub fn nearest(given: &str, known: &[&str]) -> String {
    let mut near: Vec<(f64, &str)> = known
        .iter()
        .map(|name| {
            let contained = !given.is_empty() && (name.contains(given) || given.contains(name));
            let likeness = strsim::jaro_winkler(given, name);
            (if contained { likeness.max(0.9) } else { likeness }, *name)
        })
        .filter(|(likeness, _)| *likeness >= 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.truncate(3);
    match (near.is_empty(), known.is_empty()) {
        (_, true) => "there are none".to_owned(),
        (true, false) => format!("known are {}", known.join(", ")),
        (false, false) => {
            let names: Vec<&str> = near.iter().map(|(_, name)| *name).collect();
            format!("did you mean {}?", names.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_names_first_and_the_list_otherwise() {
        let known = ["system", "jemalloc", "mimalloc"];
        assert_eq!(nearest("jemaloc", &known), "did you mean jemalloc or mimalloc?");
        assert_eq!(nearest("zzz", &known), "known are system, jemalloc, mimalloc");
        assert_eq!(nearest("x", &[]), "there are none");
    }
}
