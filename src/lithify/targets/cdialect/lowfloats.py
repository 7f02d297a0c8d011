"""Floats of 8 and 16 bits by operations on bits, for languages without those types.

`encode_T` rounds an f32 to the nearest T, ties to even; `decode_T` is exact; `round_T` is one after the other. Results
that are too large become infinite, or NaN where the type has no infinities (f8e4m3).
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.targets.cdialect.dialect import Storage
from lithify.targets.cdialect.text import Template

_ENCODE = """{function} {u} encode_{name}({f} x) {{
  {u} bits = bits_of_f32(x), sign = (bits >> 31) << {sign};
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return sign | {nan}u;
  {u} code;
  if (bits < {normal}u) {{  // subnormal: the sum rounds where the last bit is
    code = bits_of_f32(f32_of_bits(bits) + {shifter}.0f) - bits_of_f32({shifter}.0f);
  }} else {{
    code = ((bits + {half}u + ((bits >> {drop}) & 1u)) >> {drop}) - {rebias}u;
  }}
  return sign | (code > {largest}u ? {over}u : code);
}}"""

_DECODE = """{function} {f} decode_{name}({u} code) {{
  {u} bits = (code & {magnitude}u) << {drop}, sign = (code >> {sign}) << 31;
  if ((code & {magnitude}u) >= {special}u) return f32_of_bits(sign | {specials});
  return f32_of_bits(sign | bits_of_f32(f32_of_bits(bits) * {scale}.0f));
}}"""

_ROUND = "{function} {f} round_{name}({f} x) {{ return decode_{name}(encode_{name}(x)); }}"

_BF16 = {
    "encode_bf16": """{function} {u} encode_bf16({f} x) {{
  {u} bits = bits_of_f32(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}}""",
    "decode_bf16": "{function} {f} decode_bf16({u} code) {{ return f32_of_bits(code << 16); }}",
    "round_bf16": "{function} {f} round_bf16({f} x) {{ return decode_bf16(encode_bf16(x)); }}",
}

_TF32 = """{function} {f} round_tf32({f} x) {{
  {u} bits = bits_of_f32(x);
  return x != x ? x : f32_of_bits((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
}}"""

# Rounds towards zero and then sets the last bit where anything was lost: a second rounding sees on which side of a tie
# the value lies (S. Boldo, G. Melquiond, "When double rounding is odd", 2005).
_ODD = """{function} {f} odd_f32({d} x) {{
  {f} y = ({f})x;
  if (({d})y == x || x != x || f32_of_bits(bits_of_f32(y) & 0x7fffffffu) == INFINITY) return y;
  {u} bits = bits_of_f32(y);
  if (({d})f32_of_bits(bits & 0x7fffffffu) > (x < 0 ? -x : x)) --bits;
  return f32_of_bits(bits | 1u);
}}"""


@dataclass(frozen=True, slots=True)
class _Format:
    """An IEEE-like format: `mantissa` bits after a sign and exponent with a bias, the largest finite code."""

    name: str
    bits: int
    mantissa: int
    bias: int
    largest: int
    infinite: bool

    def fields(self) -> dict[str, object]:
        """What stands for the names in braces."""
        drop = 23 - self.mantissa
        magnitude = (1 << self.bits - 1) - 1
        over = self.largest + 1
        return {
            "name": self.name,
            "sign": self.bits - 1,
            "nan": hex(over | 1 << self.mantissa - 1 if self.infinite else magnitude),
            "normal": hex((127 - self.bias + 1) << 23),
            "shifter": 2 ** (24 - self.bias - self.mantissa) if self.bias + self.mantissa < 24 else 0.5,
            "half": hex((1 << drop - 1) - 1),
            "drop": drop,
            "rebias": hex((127 - self.bias) << self.mantissa),
            "largest": hex(self.largest),
            "over": hex(over),
            "magnitude": hex(magnitude),
            "special": hex(over),
            "specials": "0x7f800000u | bits" if self.infinite else "0x7fc00000u",
            "scale": 2 ** (127 - self.bias),
        }


_FORMATS = (
    _Format("f16", 16, 10, 15, 0x7BFF, True),
    _Format("f8e5m2", 8, 2, 15, 0x7B, True),
    _Format("f8e4m3", 8, 3, 7, 0x7E, False),
)


def coded(name: str, element: str) -> Storage:
    """A float kept as its bits in integers, `element` in the language: decoded when read, encoded when written."""
    return Storage(
        parameter=element,
        array=element,
        load=Template(f"decode_{name}({{pointer}}[{{index}}])"),
        store=f"{{pointer}}[{{index}}] = ({element})encode_{name}({{value}});",
    )


def low_float_auxiliaries(function: str, unsigned: str, single: str, double: str) -> dict[str, str]:
    """The auxiliaries by name. The dialect adds `bits_of_f32` and `f32_of_bits`."""
    common: dict[str, object] = {"function": function, "u": unsigned, "f": single, "d": double}
    texts = {name: text.format(**common) for name, text in _BF16.items()}
    texts["odd_f32"] = _ODD.format(**common)
    texts["round_tf32"] = _TF32.format(**common)
    for form in _FORMATS:
        fields = common | form.fields()
        for verb, text in (("encode", _ENCODE), ("decode", _DECODE), ("round", _ROUND)):
            texts[f"{verb}_{form.name}"] = text.replace("0.5.0f", "0.5f").format(**fields).replace("0.5.0f", "0.5f")
    return texts
