/** A phrase that the writing guide replaces. */
export type Rule = { name: string; pattern: RegExp; instead: string }

/** A pattern sees one sentence at a time. */
export const rules: readonly Rule[] = [
  {
    name: 'clause as subject',
    pattern: /^(?:who|what|whose|that which)\b[^?]*[.;]$/,
    instead: 'start with the thing that acts',
  },
  {
    name: 'whoever',
    pattern: /\bwh(?:o|om|at)ever\b/,
    instead: 'anyone who, the holder of, any',
  },
  {
    name: 'told',
    pattern: /\b(?:is|are|was|were|be|been|gets?) told\b|\btells? (?:so|that)\b/,
    instead: 'gets an error, is notified, returns, reports',
  },
  {
    name: 'nobody',
    pattern: /\bnobody\b|\bno one is\b/,
    instead: 'say who can, or what happens',
  },
  {
    name: 'alone',
    pattern: /\b(?!stand|leave)[a-z]+ alone\b/,
    instead: 'only',
  },
  { name: 'mend', pattern: /\bmend(?:s|ed|ing)?\b/, instead: 'fix' },
  {
    name: 'let go',
    pattern: /\blets? go\b|\bletting go\b|\bgives? up\b|\bgiv(?:en|ing) up\b/,
    instead: 'release, abandon, drop, stop',
  },
  {
    name: 'looked for',
    pattern: /\b(?:is|are|was|were|be) looked (?:at|for|up)\b/,
    instead: 'searches for, checks, reads',
  },
  {
    name: 'judge',
    pattern: /\bjudg(?:e|es|ed|ing)\b/,
    instead: 'check, verify, evaluate',
  },
  {
    name: 'beside',
    pattern: /\bbeside\b/,
    instead: 'next to, along with',
  },
  {
    name: 'stands in',
    pattern: /\bstands? (?:in|there|beside|above|before)\b/,
    instead: 'is in',
  },
  { name: 'anew', pattern: /\banew\b/, instead: 'again' },
  { name: 'for ever', pattern: /\bfor ever\b/, instead: 'permanently' },
  {
    name: 'of its own',
    pattern:
      /\bof (?:its|their|his|her|your) own\b(?! (?!(?:and|or|with|that|which|also|in|for|to|on|at|is|are|by|from|until|if|so|when)\b)\w)/,
    instead: 'separate, dedicated, its',
  },
  {
    name: 'is one',
    pattern: /\b(?<!there )(?:is|was|are) (?:not |no )?one(?=$|[.;:,)])/,
    instead: 'repeat the noun: is a valid key',
  },
  {
    name: 'is made',
    pattern: /\b(?:is|are|was|were|being|be|been) made\b(?! (?:of|up)\b)/,
    instead: 'create, with the thing that creates it',
  },
  {
    name: 'house',
    pattern: /\bthe house\b|\brooms\b/,
    instead: 'the repository, packages, folders',
  },
  {
    name: 'stranger',
    pattern: /\bstrangers?\b/,
    instead: 'a third party, anyone',
  },
  {
    name: 'on its way',
    pattern: /\bon (?:its|their) way\b/,
    instead: 'pending',
  },
]
