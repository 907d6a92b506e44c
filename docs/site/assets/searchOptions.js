/** The site builds its index with these options, and the browser loads and searches it with the same. */

const fields = ['title', 'heading', 'text']

/** A plural finds the singular. */
const processTerm = (term) => term.toLowerCase().replace(/(?<=[^s]{3})s$/, '')

export const indexOptions = { fields, storeFields: fields, processTerm }

/** The heading of the top of a page is its title. */
export const searchOptions = {
  prefix: true,
  fuzzy: 0.15,
  boost: { heading: 4 },
  boostDocument: (id) => (id.startsWith('decisions/') ? 0.5 : id.includes('#') ? 1 : 2),
  combineWith: 'AND',
}
