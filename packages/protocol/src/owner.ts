import { hex, type Infer, nullable, object, string } from './schema.ts'

/** A user as an ID token names them. `email` is null unless the provider says that it has verified it. */
const ownerIdentity = object({ issuer: string(), subject: string(), email: nullable(string()) })
export type OwnerIdentity = Infer<typeof ownerIdentity>

/**
 * Opens the commitment in an address statement. The salt depends on the address, so two addresses of one person can't be linked without
 * their openings.
 */
export const ownerOpening = object({ salt: hex(32), identity: ownerIdentity })
export type OwnerOpening = Infer<typeof ownerOpening>
