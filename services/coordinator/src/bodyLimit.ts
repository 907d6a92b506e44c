/** Bytes in the body of a call, at most. A policy that could need more is refused. */
export const MAX_BODY_BYTES = 131_072
