"""What can be folded."""

from bridge.embedded_server.folding import folds
from bridge.embedded_server.syntax import Source
from tests.bridge.embedded_server.checks import code


def test_bodies_usings_comments_and_regions_fold() -> None:
    source = Source(
        code(
            """
            using A;
            using B;

            // one
            // two
            class C
            {
                #region r
                void M()
                {
                }
                #endregion
                int x; // alone
            }
            """
        )
    )
    lines = [(source.lines.line_of(f.start), source.lines.line_of(f.end), str(f.kind)) for f in folds(source)]
    assert [(first, last) for first, last, _ in lines] == [(0, 1), (3, 4), (6, 13), (7, 11), (9, 10)]
    assert [kind.rpartition(".")[2].lower() for _, _, kind in lines] == [
        "imports",
        "comment",
        "",
        "region",
        "",
    ]


def test_nothing_on_one_line_folds() -> None:
    assert folds(Source("using A;\nclass B { void M() { } } // end\n")) == ()
