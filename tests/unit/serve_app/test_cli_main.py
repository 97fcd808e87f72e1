import importlib

import pytest

from serve_app.errors import RequestRejected


def test_what_is_wrong_is_printed_as_it_is(monkeypatch, capsys):
    def fails():
        raise RequestRejected("[a-z]", "expected [bold] or [/]")

    main = importlib.import_module("serve_app.cli.main")  # not the function of the same name
    monkeypatch.setattr(main, "app", fails)
    with pytest.raises(SystemExit):
        main.main()
    assert "error [a-z]: expected [bold] or [/]" in capsys.readouterr().err
