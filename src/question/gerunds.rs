//! What a form in -ing mostly is: an activity, a running verb, or a verb that brings objects of its own.
//!
//! Owns lists of such forms. It must not look at neighbouring words.

/// Gerunds that stand for an activity and end a compound: `animal testing`.
pub(super) fn is_activity(key: &str) -> bool {
    const ACTIVITIES: &str = "testing housing farming mining teaching dating marketing gaming voting hunting fishing \
trading banking drilling fracking training parenting shopping advertising spending lending smoking drinking racing \
boxing writing reading learning engineering programming profiling sharing streaming recycling logging breeding cloning \
screening schooling funding trafficking bullying gambling planning painting building meeting wedding clothing sampling \
mapping editing accounting bombing policing publishing branding betting warming listing labeling labelling tracking \
tipping swimming running walking dancing counseling counselling healing whaling crossing filing dumping lobbying \
fighting bargaining binding computing outsourcing piercing vaping texting driving licensing hiring rating pricing polling living";
    ACTIVITIES.split_ascii_whitespace().any(|activity| activity == key)
}

/// Participles that are nearly always the verb after a subject: `Is China doing …`.
pub(super) fn is_progressive(key: &str) -> bool {
    matches!(
        key,
        "doing"
            | "having"
            | "becoming"
            | "getting"
            | "going"
            | "being"
            | "failing"
            | "losing"
            | "winning"
            | "causing"
            | "helping"
            | "hurting"
            | "destroying"
            | "ruining"
            | "killing"
            | "turning"
            | "moving"
            | "trying"
            | "heading"
    )
}

/// Gerunds with an object and its complement: `making voting mandatory`.
pub(super) fn takes_complement(key: &str) -> bool {
    matches!(
        key,
        "making" | "keeping" | "leaving" | "holding" | "rendering" | "considering" | "getting" | "being"
    )
}

/// Gerunds with two objects: `giving children a vote`.
pub(super) fn takes_two_objects(key: &str) -> bool {
    matches!(
        key,
        "giving"
            | "granting"
            | "offering"
            | "paying"
            | "teaching"
            | "allowing"
            | "telling"
            | "sending"
            | "selling"
            | "showing"
    )
}
