from vesper.datasets.prepare.activity_features import choose_slots


def test_frequent_words_take_the_slots_in_alphabetical_order() -> None:
    words = [("pay", 5), ("bill", 1), ("login", 9), ("atm", 3)]
    vocabulary = choose_slots(words, num_slots=3, spare="type_")
    assert vocabulary.slots == ("login", "pay", "other")
    assert vocabulary.slot_of == {"pay": 1, "bill": 2, "login": 0, "atm": 2}


def test_spellings_of_one_word_share_a_slot() -> None:
    vocabulary = choose_slots([("Top-Up", 1), ("top up", 1), ("login", 1)], num_slots=2, spare="")
    assert vocabulary.slots == ("login", "top_up")
    assert vocabulary.slot_of["Top-Up"] == vocabulary.slot_of["top up"] == 1


def test_spare_slots_have_names() -> None:
    assert choose_slots([], num_slots=2, spare="type_").slots == ("type_spare_1", "type_spare_2")


def test_a_word_called_other_goes_to_the_last_slot_if_there_are_too_many_words() -> None:
    vocabulary = choose_slots([("other", 9), ("a", 3), ("b", 2)], num_slots=2, spare="")
    assert vocabulary.slots == ("a", "other")
    assert vocabulary.slot_of == {"other": 1, "a": 0, "b": 1}


def test_ties_are_broken_by_name_not_by_row_order() -> None:
    words = [("b", 1), ("a", 1), ("c", 1)]
    assert choose_slots(words, num_slots=2, spare="").slots == ("a", "other")
    assert choose_slots(words[::-1], num_slots=2, spare="").slots == ("a", "other")
