import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.analysis import Analyzer
from policies.types import Intent


def analyzed(text):
    (features,) = Analyzer().analyze([text])
    return features


def test_features_come_in_the_order_of_the_texts():
    texts = ["什么是填字游戏？", "", "how to fix it"]
    assert [analyzed(t) for t in texts] == Analyzer().analyze(texts)


def test_reads_a_dense_question():
    features = analyzed(
        "How did NVIDIA's “Data Center” revenue of $4.28 billion in Q3 2023 compare with Intel's?"
    )
    assert ("en", "how", Intent.COMPARISON) == (
        features.language,
        features.question_word,
        features.intent,
    )
    assert ("2023-Q3",) == features.dates
    assert ("4280000000 USD",) == features.numbers
    assert ("Data Center",) == features.quoted
    assert ("NVIDIA", "Data Center", "Intel") == features.entities
    assert ("NVIDIA",) == features.codes
    assert "revenue" in features.noun_phrases


def test_reads_a_chinese_question():
    features = analyzed("张伟在北京大学2021年出版的《无字碑歌》有几章？")
    assert ("zh", "how_many", Intent.FACT) == (
        features.language,
        features.question_word,
        features.intent,
    )
    assert ("2021",) == features.dates
    assert ("张伟", "北京大学", "无字碑歌") == features.entities
    assert ("无字碑歌",) == features.quoted


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("When was the new testament written", "when"),
        ("In which year did it open?", "when"),
        ("which country has the most lakes", "where"),
        ("how many moons does Mars have", "how_many"),
        ("numpy how to flatten an array", "how"),
        ("The company which bought GitHub", ""),
        ("Is there a tool that deletes mail", ""),
        ("After the merger, who led the group?", "who"),
        ("how come the sky is red", "why"),
        ("delete all mail", ""),
        ("泰国皇家军队什么时候开始频繁发动兵变？", "when"),
        ("范白虎据守的是哪座城市？", "which"),
        ("林永康位于哪里", "where"),
        ("全书共有多少字？", "how_many"),
        ("他为什么离职", "why"),
        ("劳动合同无效后应当如何处理？", "how"),
        ("谁可以成为个体工商户？", "who"),
        ("承揽人能否行使留置权？", ""),
    ],
)
def test_question_words(text, word):
    assert word == analyzed(text).question_word


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("difference between russian blue and british blue cat", Intent.COMPARISON),
        ("华为 Mate 60 和 iPhone 15 哪个更省电", Intent.COMPARISON),
        ("Python 3.11 vs 3.12 speed", Intent.COMPARISON),
        ("Summarize the third chapter", Intent.SUMMARY),
        ("请概括这份报告的主要内容", Intent.SUMMARY),
        ("How do I rotate a PDF page?", Intent.HOW_TO),
        ("is there a way to know if my mail was read", Intent.HOW_TO),
        ("离婚后怎么变更抚养权", Intent.HOW_TO),
        ("what is a hash table", Intent.DEFINITION),
        ("what does CRDT stand for?", Intent.DEFINITION),
        ("什么是填字游戏？", Intent.DEFINITION),
        ("善意取得是什么意思", Intent.DEFINITION),
        ("what is the population of Chad", Intent.FACT),
        ("who wrote the Iliad", Intent.FACT),
        ("故宫的面积是什么", Intent.FACT),
        ("why do leaves turn red", Intent.OPEN_ENDED),
        ("how does inflation affect savings", Intent.OPEN_ENDED),
        ("谈谈你对远程办公的看法", Intent.OPEN_ENDED),
    ],
)
def test_intents(text, intent):
    assert intent == analyzed(text).intent


@pytest.mark.parametrize(
    "text",
    [
        "How does it work?",
        "and in 2022?",
        "What about Microsoft?",
        "why did they leave",
        "它的作者是谁",
        "那么明年呢",
        "这个怎么用",
        "the latter",
    ],
)
def test_speaks_of_an_earlier_turn(text):
    assert analyzed(text).refers_back


@pytest.mark.parametrize(
    "text",
    [
        "Does Apple report its revenue by region?",
        "Is it legal to record a call?",
        "what is the capital of France and its population",
        "北京大学和它的历史",
        "其他合同怎么解除",
        "他人的财产受损谁赔偿",
        "delete all mail",
    ],
)
def test_speaks_for_itself(text):
    assert not analyzed(text).refers_back


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("Sorting data in a sheet", ()),
        ("Apple's revenue against Google and Meta", ("Apple", "Google", "Meta")),
        ("What did The New York Times say in Q3 2023 about the iPhone 15", ("New York Times",)),
        ("Please tell me about Bank of America", ("Bank of America",)),
        ("error E1102 of the XR-500 in 'Saturday Night'", ("E1102", "XR-500", "Saturday Night")),
        ("非洲国家的城市有哪些", ("非洲国家",)),
    ],
)
def test_entities(text, entities):
    assert entities == analyzed(text).entities


def test_a_document_pasted_in_is_read_at_its_beginning_only():
    features = analyzed("Compare Rome with Athens. " + "lorem ipsum " * 100_000)
    assert 1_200_026 == features.num_chars
    assert ("Rome", "Athens") == features.entities


@given(st.text(max_size=200))
def test_any_text_has_features(text):
    features = analyzed(text)
    assert len(text) == features.num_chars
    assert all(features.entities)
    assert all(phrase.strip() for phrase in features.noun_phrases)
