"""What a browser finds in HTML, for tests."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}


class Page(HTMLParser):
    """Reads strictly: what is opened is closed, in order.

    Attributes: ``elements`` as they come (each a tag and its attributes), ``tags`` alone, ``attributes`` (tag, name and
    value), and the ``text`` that a reader sees.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, "tags overlap"

    def handle_data(self, data: str) -> None:
        self.text += data

    def find_attribute_values(self, name: str, tag: str = "") -> list[str | None]:
        """What an attribute of this name holds, wherever it stands, or in each such tag."""
        return [value for its_tag, its_name, value in self.attributes if its_name == name and tag in ("", its_tag)]
