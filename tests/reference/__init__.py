"""The plain-Python reference that decides what is right.

Everything here is the most obvious Python on tuples, sets and dicts, and imports nothing from
`anyburl`; the compiled kernels must equal it to the last count. Conventions, used throughout:

- A triple is `(subject, relation, object)` of ints: entities `0 .. n_entities - 1`, relations
  `0 .. n_relations - 1`.
- A directed relation is one int: `d < n_relations` is read forward, `d + n_relations` backward.
- `self` (section 4.4 of the paper) is the int `n_entities`. A reflexive triple `(c, h, c)` is rewritten
  to edges between `c` and `self`, in both directions and readings, since `h(c, self)` and `h(self, c)`
  mean the same. Variables never bind to `self`: it is a constant, in a head or at the end of a body.
- Object identity (section 2.3): two different terms of a rule, variables or constants, stand for
  different entities. Every function that grounds takes `object_identity=True|False`.
"""
