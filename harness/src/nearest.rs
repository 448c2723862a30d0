//! The names nearest to one that is not known, for error messages.

/// Up to three of `known` that look like `word`, the nearest first; of equally near ones in alphabetical order.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    /// Below this Jaro-Winkler similarity a suggestion only confuses.
    const ALIKE: f64 = 0.75;
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by_key(|(_, name)| *name);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// The end of an error message: `; nearest: a, b`, or nothing.
pub fn nearest_text<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let names = nearest(word, known);
    if names.is_empty() {
        String::new()
    } else {
        format!("; nearest: {}", names.join(", "))
    }
}

/// What to say after "unknown x": `did you mean a or b?`, or the whole list where nothing is near.
pub fn suggest(word: &str, known: &[&str]) -> String {
    let near = nearest(word, known.iter().copied());
    match (near.is_empty(), known.is_empty()) {
        (_, true) => "there are none".to_owned(),
        (true, false) => format!("known are {}", known.join(", ")),
        (false, false) => format!("did you mean {}?", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_found() {
        let known = ["jemalloc", "mimalloc", "system", "null"];
        assert_eq!(nearest("jemaloc", known)[0], "jemalloc");
        assert_eq!(nearest("sytem", known), ["system"]);
        assert!(nearest("zzz", known).is_empty());
        assert_eq!(nearest_text("zzz", known), "");
        assert_eq!(nearest_text("nul", known), "; nearest: null");
        assert_eq!(suggest("nul", &known), "did you mean null?");
        assert_eq!(
            suggest("zzz", &known),
            "known are jemalloc, mimalloc, system, null"
        );
        assert_eq!(suggest("zzz", &[]), "there are none");
    }
}
