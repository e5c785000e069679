"""Mathematics in written answers: the commands that show something, and no others.

MathJax runs a language: its commands make links, load extensions, set styles, and define commands anew (``\\def``,
``\\let``, ``\\newcommand``), also those that the page itself uses. So the ones that stay are listed.
"""

from __future__ import annotations

import re

_COMMANDS = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi omicron pi varpi
    rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon
    Phi Psi Omega frac dfrac tfrac cfrac binom dbinom tbinom sqrt root of over choose atop sum prod coprod int
    iint iiint oint lim limsup liminf sup inf max min arg argmax argmin log ln lg exp sin cos tan cot sec csc sinh
    cosh tanh coth arcsin arccos arctan det dim ker gcd deg hom Pr mod bmod pmod operatorname limits nolimits
    displaystyle textstyle scriptstyle scriptscriptstyle cdot cdots ldots dots dotsc dotsb vdots ddots times div
    pm mp ast star circ bullet oplus ominus otimes odot wedge vee land lor lnot neg cap cup setminus smallsetminus
    uplus sqcap sqcup bigcap bigcup bigvee bigwedge bigoplus bigotimes leq le geq ge neq ne ll gg lt gt leqslant
    geqslant approx approxeq simeq sim cong equiv propto doteq triangleq coloneqq in notin ni subset subseteq
    subsetneq supset supseteq supsetneq emptyset varnothing forall exists nexists mid nmid parallel nparallel perp
    models vdash dashv prec succ preceq succeq asymp bowtie to gets mapsto rightarrow leftarrow leftrightarrow
    Rightarrow Leftarrow Leftrightarrow longrightarrow longleftarrow longleftrightarrow Longrightarrow
    Longleftarrow Longleftrightarrow longmapsto implies impliedby iff uparrow downarrow updownarrow Uparrow
    Downarrow nearrow searrow swarrow nwarrow hookrightarrow hookleftarrow rightleftharpoons xrightarrow
    xleftarrow therefore because infty partial nabla hbar ell Re Im aleph imath jmath wp angle triangle square Box
    Diamond checkmark dagger ddagger prime backslash colon top bot degree S P flat natural sharp clubsuit
    diamondsuit heartsuit spadesuit left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl
    Biggr bigm Bigm langle rangle lfloor rfloor lceil rceil lvert rvert lVert rVert vert Vert lbrace rbrace lbrack
    rbrack lgroup rgroup hat widehat bar overline underline tilde widetilde vec dot ddot check breve acute grave
    mathring overrightarrow overleftarrow overbrace underbrace overset underset stackrel substack boxed cancel not
    text textbf textit textrm textsf texttt mathrm mathbf mathit mathsf mathtt mathcal mathbb mathfrak mathscr
    boldsymbol bold bm pmb mbox hbox rm bf it cal quad qquad enspace thinspace medspace thickspace negthinspace
    hspace space phantom hphantom vphantom smash strut begin end hline hfill tag notag nonumber intercal top
    transpose ltimes rtimes
"""
_SHOWN = frozenset(_COMMANDS.split())
_COMMAND = re.compile(r"\\([A-Za-z]+)(?=(&#|&(?!amp;|lt;|gt;|quot;|nbsp;)[a-z])?)")
_WRITTEN_BACKSLASH = re.compile(r"&(?:#0*92|#[xX]0*5[cC]|bsol);?")
_CODE = re.compile(r"(<(?:pre|code)\b.*?</(?:pre|code)>)", re.DOTALL)
_INVISIBLE = "\u200b"  # behind a backslash it ends the command; the text looks as it was typed


def disable_math_commands(html: str) -> str:
    r"""HTML in which a backslash begins no command but those that show something.

    >>> disable_math_commands(r"$\frac{1}{2} \def\x{y}$").replace("\u200b", "|")
    '$\\frac{1}{2} \\|def\\|x{y}$'
    """
    parts = _CODE.split(html)  # in code MathJax reads nothing, and every other part is code
    parts[::2] = [_COMMAND.sub(_disable_unless_visible, _WRITTEN_BACKSLASH.sub(r"\\", part)) for part in parts[::2]]
    return "".join(parts)


def _disable_unless_visible(command: re.Match[str]) -> str:
    # letters that stand there as entities would make another command of it
    is_shown = command[1] in _SHOWN and not command[2]
    return command[0] if is_shown else f"\\{_INVISIBLE}{command[1]}"
