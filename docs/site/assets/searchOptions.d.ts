import type { Options, SearchOptions } from 'minisearch'

export const indexOptions: Options
export const searchOptions: SearchOptions
