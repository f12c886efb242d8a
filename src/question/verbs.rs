//! Words that can be verbs, and their forms.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::lexicon;

/// base, past, past participle
const IRREGULAR: &str = "be was been/have had had/do did done/go went gone/become became become/begin began begun/\
bear bore borne/beat beat beaten/bend bent bent/bet bet bet/bind bound bound/bite bit bitten/blow blew blown/\
break broke broken/breed bred bred/bring brought brought/build built built/burst burst burst/buy bought bought/\
cast cast cast/catch caught caught/choose chose chosen/cling clung clung/come came come/cost cost cost/cut cut cut/\
deal dealt dealt/dig dug dug/draw drew drawn/drink drank drunk/drive drove driven/eat ate eaten/fall fell fallen/\
feed fed fed/feel felt felt/fight fought fought/find found found/flee fled fled/fly flew flown/forbid forbade forbidden/\
forget forgot forgotten/forgive forgave forgiven/freeze froze frozen/get got got/give gave given/grow grew grown/\
hang hung hung/hear heard heard/hide hid hidden/hit hit hit/hold held held/hurt hurt hurt/keep kept kept/know knew known/\
lay laid laid/lead led led/leave left left/lend lent lent/let let let/lose lost lost/make made made/mean meant meant/\
meet met met/overcome overcame overcome/overthrow overthrew overthrown/pay paid paid/prove proved proven/put put put/\
quit quit quit/read read read/ride rode ridden/ring rang rung/rise rose risen/run ran run/say said said/see saw seen/\
seek sought sought/sell sold sold/send sent sent/set set set/shake shook shaken/shed shed shed/shoot shot shot/\
show showed shown/shrink shrank shrunk/shut shut shut/sing sang sung/sink sank sunk/sit sat sat/sleep slept slept/\
speak spoke spoken/spend spent spent/split split split/spread spread spread/stand stood stood/steal stole stolen/\
stick stuck stuck/strike struck struck/swear swore sworn/sweep swept swept/swim swam swum/take took taken/\
teach taught taught/tear tore torn/tell told told/think thought thought/throw threw thrown/undergo underwent undergone/\
understand understood understood/undermine undermined undermined/undo undid undone/uphold upheld upheld/\
wake woke woken/wear wore worn/weaken weakened weakened/win won won/withdraw withdrew withdrawn/\
withhold withheld withheld/withstand withstood withstood/write wrote written";

const SURE: &str = "retrieve instigate be have do abolish absorb accept achieve acknowledge acquire adapt add adhere adjust admit adopt \
affect afford agree allow alter amend annex annoy appear apply appoint appreciate approve argue \
arise ask assassinate assess assist assume assure attract avoid become begin behave believe belong \
betray bother bring build buy carry cease celebrate choose collapse collect come commit compel \
compete comply comprise conceal concede condemn confirm conform confuse conquer consider consist \
constrain consume contain contribute convey convince cope create criminalise criminalize cure \
declare deepen defeat defend define defy deliver demean deny depend deprive derive deserve destroy \
deter determine develop die differ diminish disagree disappear discourage discriminate distinguish \
distort distract disturb diversify divide dominate donate earn eat embrace emerge emit employ \
empower enable enact encourage endanger endorse enforce engage enhance enjoy ensure enter entail \
entitle eradicate erase erode establish evolve exacerbate exceed exclude exist expand expect explain \
expose extend facilitate fail feel find follow forbid foster fulfil fulfill get give glorify go \
govern grant grow happen hear help hide hinder ignore imagine impede implement imply impose \
impoverish improve inform infringe inhibit inherit injure inspire instil instill intend intensify \
interfere intervene introduce invade invent invest involve join justify keep kill know lead learn \
leave legalise legalize lessen let listen lose maintain make marry mean meet minimise minimize \
mislead need negotiate obey obscure obstruct obtain occur oppose oppress outweigh overcome overrule \
own pay perform perpetuate persist persuade pollute portray possess prefer prepare preserve pretend \
prevail prevent prioritise prioritize produce prohibit promote protect prove provide provoke publish \
punish pursue put qualify raise reach realise realize receive recognise recognize reconsider recover \
recruit reduce refer reflect refuse reinforce reject rely remain remember remove render renounce \
repay repeal replace represent require resemble resist resolve restrict retain reveal revive ruin \
sacrifice satisfy save say see seek seem sell send serve settle shorten simplify solve speak spend \
stifle stigmatise stop strengthen strive succeed suffer suffice supplant suppose suppress survive \
suspend sustain swear take teach tell tend terminate think threaten thrive tolerate undermine \
understand unite uphold vary violate want weaken widen withdraw withstand worsen write abort appease \
bribe bury cherish classify codify collaborate communicate complain concentrate construct consult \
continue contradict cooperate coordinate criticise criticize decentralise decide deport descend \
describe detain detect deteriorate devote discard discuss dismiss displace distribute educate \
eliminate embarrass emulate enrich entertain execute fluctuate forgive generate hasten heighten \
identify ignite impair imprison incentivise incentivize include indicate indoctrinate induce inflict \
infect inhabit initiate innovate integrate interpret interrupt intimidate investigate jeopardise \
jeopardize mitigate mobilise motivate nominate nurture offend operate outlast outperform overlook \
overshadow overstate oversee overthrow participate persecute postpone precede predict presume \
proliferate propose prosecute prosper reassure rebuild recommend reconcile redefine redistribute \
rehabilitate reintroduce rejoin relieve reshape respond restore resume retaliate reunite revise \
revoke safeguard scrutinise secede select stabilise stabilize stimulate submit substitute testify \
tighten transcend transform utilise utilize vaccinate vanish victimise withhold dampen incite \
compensate procreate unify multiply incorporate normalise refrain accuse advocate aggravate \
alleviate allocate amplify apologise apologize ascribe assert attain attribute bestow broaden coerce \
coexist commodify comprehend condone confer confine confront contemplate curtail deceive \
decriminalise decriminalize degrade dehumanise dehumanize delegitimise democratise demonise \
demonstrate denounce depict deploy deprecate desensitise devastate disappoint discredit disempower \
dismantle disrupt dissuade downplay elevate enlighten enslave entrench envision equip evaluate evade \
exaggerate exonerate expel exterminate extract extradite fabricate forgo formulate glamorise \
harmonise hinge humiliate illustrate immigrate implicate inhale interact intertwine invalidate \
invoke irritate legitimise legitimize liberate manipulate marginalise marginalize migrate \
misrepresent modernise modify necessitate negate obligate outnumber overburden overestimate \
overwhelm perceive pertain populate preclude profess propagate propel reaffirm recycle refute \
reinstate reiterate reside restrain retract sanitise shun socialise spawn speculate stagnate \
standardise subvert supersede supervise surround sympathise taint tarnish terrify thwart traumatise \
trivialise uncover underestimate underfund undervalue validate vindicate visualise abandon";

const EITHER: &str = "structure curb plummet abuse access account act age aid answer appeal approach arm attack attempt award balance bar base \
battle bear benefit bet blame block bomb border boycott brand breach break broadcast burden call \
campaign care cause censor challenge change charge claim clone close combat command comfort comment \
complement compromise concern conduct consent constitute contact contract control cost count counter \
cover crash cut curb deal debate decrease delay discount display disregard dispute divorce double \
doubt draw dream drink drive drop effect estimate exchange excuse exercise experience experiment \
export express face fall fear fight file finish fire fit function gamble gift guard handle hate heal \
hold honor honour hope host hurt impact import increase influence insult interest issue judge jump \
lack land last lay leak level lie lift limit link live look love manage march mark market master \
measure mistreat monitor move murder name object occupy open order outlaw outlive panic pass phase \
place plan play point pose post practice practise present press pressure privatise privatize process \
profit progress project promise protest purchase push question race range rank rape rate react read \
rebel record reform refund regard regret regulate relate release relocate rent repair reply report \
request research reserve rest result return reverse review reward right ring rise risk rob rule run \
sanction scale scare score scrap screen search secure separate set shift shock shut sign signal \
smoke sound split sponsor spread spur stand start state stay steal stick strike struggle study \
subsidise subsidize suit supply support surrender switch talk target tax test throw tie touch trade \
train transfer travel treat trigger trust turn undergo upset value view visit vote walk warn \
watch waste wear welcome wonder work wreck respect trap harbor harbour bully ally capture chase \
compare complete conserve convert convict correct cross dare design devalue discipline disclose \
elect exhaust explore fade federate flourish hamper harass highlight isolate kneel merge nationalise \
nationalize normalize objectify optimise penalise penalize pardon plague police polarise polarize \
proceed procure quit radicalise revolutionise revolutionize silence slow strip surpass tackle \
torture translate transport undo veto yield speed sink fuel spark hunt ease assign address advance \
aim arrest ban boost conflict damage decline demand desire end equal exempt favor favour finance fix \
focus force fund gain guarantee guide harm hire matter merit neglect offer permit shape share show \
try urge use wait win wish worry escape warrant retire lower feed exploit stem perfect resort strain \
delete worship privilege moderate disadvantage";

/// Verbs followed by a bare infinitive: `help reduce`.
const BARE_TAKERS: [&str; 5] = ["help", "helps", "helped", "let", "dare"];

/// Verbs of more than one syllable that double their last letter before -ed.
const DOUBLING: &str = "prefer refer defer infer confer occur recur incur commit permit admit submit omit regret compel \
propel expel control rebel transfer equip deter abet outwit";

type Forms = HashMap<&'static str, (&'static str, &'static str)>;

static FORMS: LazyLock<Forms> = LazyLock::new(|| {
    let mut forms = HashMap::new();
    for row in IRREGULAR.split('/') {
        let mut cells = row.split_ascii_whitespace();
        if let (Some(base), Some(past), Some(done)) = (cells.next(), cells.next(), cells.next()) {
            forms.insert(base, (past, done));
        }
    }
    forms
});
static PARTICIPLES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| FORMS.values().map(|(_, done)| *done).collect());
static PASTS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    FORMS
        .iter()
        .filter(|(base, (past, _))| *base != past && *past != "saw")
        .map(|(base, (past, _))| (*past, *base))
        .collect()
});
static SURE_SET: LazyLock<HashSet<&'static str>> = LazyLock::new(|| SURE.split_ascii_whitespace().collect());
static EITHER_SET: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    EITHER
        .split_ascii_whitespace()
        .chain(FORMS.keys().copied())
        .filter(|word| !SURE_SET.contains(word))
        .collect()
});
static DOUBLING_SET: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| DOUBLING.split_ascii_whitespace().collect());

/// The form of a finite lexical verb. Its negation has the same form of *do*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `they lead`
    Base,
    /// `it leads`
    Third,
    /// `it led`
    Past,
}

/// True for a bare form that is nearly always a verb.
pub(super) fn is_sure_base(key: &str) -> bool {
    SURE_SET.contains(key)
        || (key.len() > 6
            && ["ise", "ize", "ify"].iter().any(|end| key.ends_with(end))
            && !["exercise", "franchise", "enterprise", "expertise", "merchandise", "otherwise"]
                .contains(&key))
}

/// True for a bare form that is a verb as often as a noun or adjective.
pub(super) fn is_either_base(key: &str) -> bool {
    EITHER_SET.contains(key)
        || (key.len() > 6
            && key.ends_with("ate")
            && !super::lexicon::is_adjective(key)
            && ![
                "climate",
                "private",
                "corporate",
                "candidate",
                "electorate",
                "graduate",
                "certificate",
                "chocolate",
                "ultimate",
                "intimate",
                "immediate",
                "delegate",
                "associate",
                "advocate",
                "alternate",
                "doctorate",
                "carbohydrate",
                "consulate",
                "syndicate",
            ]
            .contains(&key))
}

/// True for a verb that a bare infinitive may follow.
pub(super) fn takes_bare_infinitive(key: &str) -> bool {
    BARE_TAKERS.contains(&key)
}

/// The base of a third-person form: `leads` → `lead`; `None` if no known verb fits.
pub(super) fn base_of_third(key: &str) -> Option<String> {
    match key {
        "has" => return Some("have".into()),
        "does" => return Some("do".into()),
        "goes" => return Some("go".into()),
        _ => {}
    }
    let known = |base: &str| is_sure_base(base) || is_either_base(base);
    let stem = key.strip_suffix('s')?;
    if let Some(y) = stem.strip_suffix("ie").map(|root| format!("{root}y"))
        && known(&y)
    {
        return Some(y);
    }
    if let Some(root) = stem.strip_suffix('e')
        && third_person(root) == key
        && known(root)
    {
        return Some(root.to_owned());
    }
    (known(stem) && third_person(stem) == key).then(|| stem.to_owned())
}

/// The base of a past form: `led` → `lead`, `worked` → `work`.
pub(super) fn base_of_past(key: &str) -> Option<String> {
    if let Some(base) = PASTS.get(key) {
        return Some((*base).to_owned());
    }
    let known = |base: &str| is_sure_base(base) || is_either_base(base);
    let stem = key.strip_suffix("ed")?;
    let mut bases = vec![format!("{stem}e"), stem.to_owned()];
    if let Some(root) = stem.strip_suffix('i') {
        bases.push(format!("{root}y"));
    }
    if let Some(last) = stem.chars().last() {
        bases.push(stem[..stem.len() - last.len_utf8()].to_owned());
    }
    bases.into_iter().find(|base| known(base) && past(base) == key)
}

/// True for a past participle by table or by its ending.
pub(super) fn is_participle(key: &str) -> bool {
    const NOUNS: [&str; 10] =
        ["need", "speed", "seed", "feed", "breed", "weed", "greed", "hundred", "indeed", "deed"];
    PARTICIPLES.contains(key)
        && !["cost", "cut", "set", "put", "let", "read", "hit", "bet", "run"].contains(&key)
        || (key.len() > 3 && key.ends_with("ed") && !NOUNS.contains(&key))
}

/// `lead` → `leads`, `carry` → `carries`, `be` → `is`.
pub(super) fn third_person(base: &str) -> String {
    match base {
        "be" => return "is".into(),
        "have" => return "has".into(),
        _ => {}
    }
    if ["s", "x", "z", "ch", "sh", "o"].iter().any(|end| base.ends_with(end)) {
        return format!("{base}es");
    }
    match consonant_y(base) {
        Some(root) => format!("{root}ies"),
        None => format!("{base}s"),
    }
}

/// `lead` → `led`, `ban` → `banned`, `carry` → `carried`.
pub(super) fn past(base: &str) -> String {
    if let Some((past, _)) = FORMS.get(base) {
        return (*past).to_owned();
    }
    if base.ends_with('e') {
        return format!("{base}d");
    }
    if let Some(root) = consonant_y(base) {
        return format!("{root}ied");
    }
    match base.chars().last() {
        Some(last) if doubles(base) => format!("{base}{last}ed"),
        _ => format!("{base}ed"),
    }
}

/// The verb in `form`.
pub(super) fn conjugate(base: &str, form: Form) -> String {
    match form {
        Form::Base => base.to_owned(),
        Form::Third => third_person(base),
        Form::Past => past(base),
    }
}

/// The form of *do* that carries a negation of a verb in `form`.
pub(super) fn support(form: Form) -> &'static str {
    match form {
        Form::Base => "do",
        Form::Third => "does",
        Form::Past => "did",
    }
}

/// The form of the statement's verb for a form of *do* in the question.
pub(super) fn form_of_do(key: &str) -> Form {
    match key {
        "does" => Form::Third,
        "did" => Form::Past,
        _ => Form::Base,
    }
}

/// True for a word that can be a finite verb in some form and is not an auxiliary.
pub(super) fn is_any_form(key: &str) -> bool {
    !lexicon::is_auxiliary(key)
        && (is_sure_base(key)
            || is_either_base(key)
            || base_of_third(key).is_some()
            || base_of_past(key).is_some())
}

fn is_vowel(letter: char) -> bool {
    matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u')
}

fn consonant_y(base: &str) -> Option<&str> {
    let root = base.strip_suffix('y')?;
    root.chars().last().filter(|&last| !is_vowel(last))?;
    Some(root)
}

fn doubles(base: &str) -> bool {
    if DOUBLING_SET.contains(base) {
        return true;
    }
    let letters: Vec<char> = base.chars().collect();
    let [rest @ .., vowel, last] = letters.as_slice() else {
        return false;
    };
    let single_vowel = is_vowel(*vowel) && !is_vowel(*last) && !matches!(last, 'w' | 'x' | 'y');
    single_vowel && !rest.is_empty() && rest.iter().all(|&letter| !is_vowel(letter))
}
