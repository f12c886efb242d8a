//! The closed word classes of English, and the adjectives, adverbs and -ing forms that the rules need most often.
//!
//! A `key` is a word in lower case with straight apostrophes (`words.rs`). The `NOT_…` lists are exceptions to the rules of endings.

use std::collections::HashSet;
use std::sync::LazyLock;

type List = LazyLock<HashSet<&'static str>>;

fn list(words: &'static str) -> HashSet<&'static str> {
    words.split_ascii_whitespace().collect()
}

static DETERMINERS: List = LazyLock::new(|| {
    list(
        "a an the my our their its his her your another this these those each every no some any all both either \
         neither what such most many few several enough",
    )
});
static PREPOSITIONS: List = LazyLock::new(|| {
    list(
        "of in on at by for from with without about against between among amongst during through throughout over \
         under within across into onto upon after before behind beyond beneath beside besides near off toward towards \
         via per despite except regarding concerning amid inside outside around along above below versus vs like \
         unlike since until till as than",
    )
});
static SUBORDINATORS: List = LazyLock::new(|| {
    list("because if when whenever while although though unless whereas whether once provided so")
});
static RELATIVES: List = LazyLock::new(|| list("that which who whom whose where"));
static CONJUNCTIONS: List = LazyLock::new(|| list("and or but nor yet & and/or"));
static PRONOUNS: List = LazyLock::new(|| {
    list(
        "i you we they he she it there everyone everybody someone somebody anyone anybody nobody everything something \
         nothing anything me us them him one none",
    )
});
static WH: List =
    LazyLock::new(|| list("what why how who whom whose which where what's who's how's where's when"));
static BE: List = LazyLock::new(|| list("is are was were am"));
static HAVE: List = LazyLock::new(|| list("has have had"));
static DO: List = LazyLock::new(|| list("does do did"));
static MODALS: List = LazyLock::new(|| list("should would could can will might may must shall ought"));
static ADVERBS: List = LazyLock::new(|| {
    list(
        "always never ever often sometimes still already also just only even really actually truly very too quite \
         rather more less most least so as not indeed far much now again soon almost nearly merely simply inherently \
         necessarily perhaps maybe no-longer seldom rarely hardly barely scarcely well better worse automatically \
         overly fairly highly currently long further",
    )
});
static TRAILING_ADVERBS: List = LazyLock::new(|| {
    list(
        "today online abroad alone here worldwide nowadays overseas together offline tomorrow yesterday ago anymore \
         everywhere anywhere elsewhere out up down away back instead tonight",
    )
});
static NOT_ADVERBS: List = LazyLock::new(|| {
    list(
        "family supply reply apply bully belly jelly italy comply multiply monopoly assembly anomaly elderly \
         early friendly likely unlikely deadly costly silly lonely daily weekly monthly yearly timely orderly \
         lively lovely cowardly worldly ghostly saintly scholarly imply butterfly homily",
    )
});
static ADJECTIVES: List = LazyLock::new(|| {
    list(
        "good bad right wrong fair unfair safe unsafe dangerous true false real fake dead alive free equal unequal evil \
         cruel kind healthy unhealthy healthier better worse best worst necessary unnecessary possible impossible likely \
         unlikely legal illegal moral immoral ethical unethical justified unjustified outdated overrated underrated \
         obsolete extinct mandatory compulsory voluntary worth worthy unworthy guilty innocent able unable ready rich \
         poor strong weak great big large small high low new old young wise unwise foolish smart stupid clever dumb sane \
         insane crazy happy unhappy sad sorry glad proud aware unaware afraid alone alike open closed clean dirty cheap \
         expensive costly friendly unfriendly deadly ugly lonely easy easier hard harder difficult simple complex \
         complicated important unimportant relevant irrelevant efficient inefficient sufficient insufficient \
         effective ineffective competent incompetent consistent inconsistent independent dependent different \
         indifferent violent evident apparent inherent innocent intelligent decent recent urgent permanent transparent \
         prevalent significant insignificant reluctant tolerant intolerant redundant dominant resistant pleasant vegan \
         vegetarian racist sexist feminist capitalist socialist communist fascist anti-democratic democratic tragic \
         toxic sustainable unsustainable hypocritical satisfied dissatisfied overpriced secure insecure mature immature \
         sure unsure certain uncertain fit unfit sound valid invalid void null just unjust humane inhumane sane fine okay \
         ok acceptable alright private public secret sacred naked wicked biased unbiased flawed broken doomed corrupt \
         honest dishonest modern ancient absolute relative infinite finite unique universal obscene genuine divine \
         appropriate inappropriate proportionate disproportionate considerate inanimate elaborate adequate inadequate legitimate illegitimate accurate inaccurate desperate \
         compatible incompatible responsible irresponsible essential beneficial detrimental harmful harmless pointless \
         useless useful sick ill gay straight male female black white blue red green dark bright fast slow faster slower \
         safer stronger weaker smarter happier richer poorer cheaper cleaner greener bigger smaller larger greater lower \
         higher older younger wiser kinder crueler crueller riskier risky scary funny greedy lazy noisy messy costlier \
         tasty guilty worthy lucky lonely angry hungry mighty needy thirsty unconstitutional sacrosanct top key crucial \
         vital central primary secondary main major minor primitive superior inferior excessive full empty complete \
         incomplete absent present confident hesitant content willing unwilling misleading binding lasting ongoing \
         interesting boring damaging demeaning degrading exploitative humiliating disturbing worrying alarming \
         threatening rewarding satisfying dying missing failing misguided severe extreme scarce rare common uncommon \
         aggressive progressive regressive conservative liberal radical moderate strict lenient harsh cool hot cold warm \
         overcrowded short tall deep wide thin fat slim quick slower busy reckless senseless ineligible eligible \
         unavoidable inevitable available unavailable idle sane sexual criminal economic economical comparable \
         incomparable subject prone due liable immune akin tantamount conducive complicit okay correct incorrect overt covert perfect wasteful barbaric archaic",
    )
});
static NOT_ADJECTIVES: List = LazyLock::new(|| {
    list(
        "animal capital festival hospital proposal approval removal withdrawal denial journal signal material \
         arrival survival refusal disposal rehearsal rental renewal appeal individual professional official \
         potential tutorial manual ritual cannibal portal referral terminal cathedral carnival mineral \
         general admiral funeral scandal interval numeral arsenal music topic logic traffic academic republic \
         clinic critic mechanic panic picnic fabric rhetoric arithmetic epidemic pandemic plastic garlic \
         ethic mosaic skeptic cleric logistic magic classic archive motive initiative alternative perspective \
         incentive detective executive representative narrative objective native directive collective \
         operative preservative additive adjective vegetable constable variable library salary dictionary \
         military secretary january february documentary commentary missionary penitentiary judiciary \
         beneficiary handful",
    )
});
static FOREIGN: List = LazyLock::new(|| {
    list(
        "el la los las un una uno unos de del que por para con es son se su sus le les des du une est et ou dans sur \
         pour qui il lo gli di da dei della delle e non si ne pas au aux der die das und ist ein eine einen nicht den \
         dem von zu mit auf ce cette sont och är att det som en av på för não os um uma do dos das em no na het een van \
         niet zijn y o pero como más è ma più nel nella sul alla",
    )
});
static ENGLISH: List = LazyLock::new(|| {
    list(
        "the a an of and to is are was were should would could can will has have had does did do be been not it we you \
         they i for with by that this these those than more their our its his her your my there if or from as at on in",
    )
});

/// An article, a possessive or a quantifier that opens a noun phrase.
pub(super) fn is_determiner(key: &str) -> bool {
    DETERMINERS.contains(key)
}

/// A preposition other than `to`.
pub(super) fn is_preposition(key: &str) -> bool {
    PREPOSITIONS.contains(key)
}

/// A word that opens an adverbial clause.
pub(super) fn is_subordinator(key: &str) -> bool {
    SUBORDINATORS.contains(key)
}

/// A relative pronoun, or `that` before a clause.
pub(super) fn is_relative(key: &str) -> bool {
    RELATIVES.contains(key)
}

/// A coordinating conjunction.
pub(super) fn is_conjunction(key: &str) -> bool {
    CONJUNCTIONS.contains(key)
}

/// A pronoun that is a whole noun phrase by itself.
pub(super) fn is_pronoun(key: &str) -> bool {
    PRONOUNS.contains(key)
}

/// A word that opens a question that cannot be answered by yes or no.
pub(super) fn is_wh(key: &str) -> bool {
    WH.contains(key)
}

/// A finite form of *be*.
pub(super) fn is_be(key: &str) -> bool {
    BE.contains(key)
}

/// A finite form of *have*.
pub(super) fn is_have(key: &str) -> bool {
    HAVE.contains(key)
}

/// A finite form of *do*.
pub(super) fn is_do(key: &str) -> bool {
    DO.contains(key)
}

/// A modal verb.
pub(super) fn is_modal(key: &str) -> bool {
    MODALS.contains(key)
}

/// Any finite auxiliary, without contraction.
pub(super) fn is_auxiliary(key: &str) -> bool {
    is_be(key) || is_have(key) || is_do(key) || is_modal(key)
}

/// The auxiliary inside a negative contraction: `isn't` → `is`, `cannot` → `can`.
pub(super) fn contracted_negative(key: &str) -> Option<&str> {
    match key {
        "won't" => Some("will"),
        "can't" | "cannot" => Some("can"),
        "shan't" => Some("shall"),
        _ => key.strip_suffix("n't").filter(|stem| is_auxiliary(stem)),
    }
}

/// An adverb that can stand between a subject and its verb or predicate.
pub(super) fn is_adverb(key: &str) -> bool {
    ADVERBS.contains(key)
        || (key.len() > 4 && key.ends_with("ly") && !NOT_ADVERBS.contains(key) && key.is_ascii())
}

/// An adverb or particle that stays with the noun or verb before it.
pub(super) fn is_trailing_adverb(key: &str) -> bool {
    TRAILING_ADVERBS.contains(key)
}

/// An adjective by list or by its ending.
pub(super) fn is_adjective(key: &str) -> bool {
    const ENDINGS: [&str; 12] =
        ["able", "ible", "ful", "less", "ous", "ive", "ical", "ial", "onal", "ary", "ic", "ish"];
    if ADJECTIVES.contains(key) {
        return true;
    }
    if NOT_ADJECTIVES.contains(key) {
        return false;
    }
    let prefixed =
        ["anti-", "pro-", "non-", "over-", "under-"].iter().find_map(|prefix| key.strip_prefix(prefix));
    if prefixed.is_some_and(|stem| ADJECTIVES.contains(stem) || stem.ends_with("ist")) {
        return true;
    }
    let ends = |ending: &str| key.len() > ending.len() + 2 && key.ends_with(ending);
    ENDINGS.iter().any(|ending| ends(ending))
        || (key.len() > 5 && ["al", "ular"].iter().any(|ending| key.ends_with(ending)))
}

/// A word that is frequent in another European language; a few are English words too.
pub(super) fn is_foreign(key: &str) -> bool {
    FOREIGN.contains(key)
}

/// One of the commonest English function words.
pub(super) fn is_english(key: &str) -> bool {
    ENGLISH.contains(key)
}

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
