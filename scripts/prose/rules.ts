/** A phrase that the writing guide replaces. `sample` is a sentence with it, for the tests. */
export type Rule = { name: string; pattern: RegExp; instead: string; sample: string }

/** A pattern sees one sentence at a time. */
export const rules: readonly Rule[] = [
  {
    name: 'clause as subject',
    pattern: /^(?:who|what|whose|that which)\b[^?]*[.;]$/,
    instead: 'start with the thing that acts',
    sample: 'Who waits for it gets an error.',
  },
  {
    name: 'whoever',
    pattern: /\bwh(?:o|om|at)ever\b/,
    instead: 'anyone who, the holder of, any',
    sample: 'The key belongs to whoever has the file.',
  },
  {
    name: 'told',
    pattern: /\b(?:is|are|was|were|be|been|gets?) told\b|\btells? (?:so|that)\b/,
    instead: 'gets an error, is notified, returns, reports',
    sample: 'The caller is told.',
  },
  {
    name: 'nobody',
    pattern: /\bnobody\b|\bno one is\b/,
    instead: 'say who can, or what happens',
    sample: 'Nobody waits for the log.',
  },
  {
    name: 'alone',
    pattern: /\b(?!stand|leave)[a-z]+ alone\b/,
    instead: 'only',
    sample: 'The limit counts transactions alone.',
  },
  { name: 'mend', pattern: /\bmend(?:s|ed|ing)?\b/, instead: 'fix', sample: 'The next release mends it.' },
  {
    name: 'let go',
    pattern: /\blets? go\b|\bletting go\b|\bgives? up\b|\bgiv(?:en|ing) up\b/,
    instead: 'release, abandon, drop, stop',
    sample: 'The job is given up after a day.',
  },
  {
    name: 'looked for',
    pattern: /\b(?:is|are|was|were|be) looked (?:at|for|up)\b/,
    instead: 'searches for, checks, reads',
    sample: 'The proof is looked for each minute.',
  },
  {
    name: 'judge',
    pattern: /\bjudg(?:e|es|ed|ing)\b/,
    instead: 'check, verify, evaluate',
    sample: 'The verifier judges each quote.',
  },
  {
    name: 'beside',
    pattern: /\bbeside\b/,
    instead: 'next to, along with',
    sample: 'The signature is beside the digest.',
  },
  {
    name: 'stands in',
    pattern: /\bstands? (?:in|there|beside|above|before)\b/,
    instead: 'is in',
    sample: 'The hash stands in the quote.',
  },
  { name: 'anew', pattern: /\banew\b/, instead: 'again', sample: 'The worker starts anew.' },
  { name: 'for ever', pattern: /\bfor ever\b/, instead: 'permanently', sample: 'The log keeps it for ever.' },
  {
    name: 'of its own',
    pattern:
      /\bof (?:its|their|his|her|your) own\b(?! (?!(?:and|or|with|that|which|also|in|for|to|on|at|is|are|by|from|until|if|so|when)\b)\w)/,
    instead: 'separate, dedicated, its',
    sample: 'The worker runs in a process of its own.',
  },
  {
    name: 'is one',
    pattern: /\b(?<!there )(?:is|was|are) (?:not |no )?one(?=$|[.;:,)])/,
    instead: 'repeat the noun: is a valid key',
    sample: 'The key is not one.',
  },
  {
    name: 'is made',
    pattern: /\b(?:is|are|was|were|being|be|been) made\b(?! (?:of|up)\b)/,
    instead: 'create, with the thing that creates it',
    sample: 'A wallet is being made.',
  },
  {
    name: 'house',
    pattern: /\bthe house\b|\brooms\b/,
    instead: 'the repository, packages, folders',
    sample: 'A rule for the house.',
  },
  {
    name: 'stranger',
    pattern: /\bstrangers?\b/,
    instead: 'a third party, anyone',
    sample: 'A stranger can check it.',
  },
  {
    name: 'on its way',
    pattern: /\bon (?:its|their) way\b/,
    instead: 'pending',
    sample: 'A payment is on its way.',
  },
]
