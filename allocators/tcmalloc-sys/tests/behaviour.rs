//! The arm keeps the rules of the behaviour suite, or says why it is not there.

use contract::Arm;
use tcmalloc_sys::Gperftools;

#[cfg(gperftools)]
#[test]
fn it_keeps_every_rule() {
    use contract::suite;
    let heap = Gperftools::open("tcmalloc-gperftools", &[]).expect("the arm opens");
    let rows = suite::run(&heap);
    for row in &rows {
        println!("{row}");
    }
    assert_eq!(suite::broken(&rows), "");
}

#[cfg(not(gperftools))]
#[test]
fn without_the_archive_it_says_what_to_do() {
    let Err(contract::Refused::Unavailable(why)) = Gperftools::open("tcmalloc-gperftools", &[])
    else {
        panic!("opened, or refused for another reason");
    };
    assert!(why.contains("rebuild"), "{why}");
}
