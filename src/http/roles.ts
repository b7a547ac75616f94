/** Who may do what. `tenant` sees and changes only what is its own tenant's. */
export const roles = ['admin', 'operator', 'viewer', 'tenant'] as const
export type Role = (typeof roles)[number]

/** Who may use a route: these roles, or `anybody`, with or without a key. */
export type Access = readonly Role[] | 'anybody'

/** Everyone with a key. What a tenant sees is cut down to its own by the route. */
export const readers: Access = ['admin', 'operator', 'viewer', 'tenant']
/** Sees all tenants at once. */
export const overseers: Access = ['admin', 'operator', 'viewer']
/** Changes work: submits, seals, cancels, retries. A tenant only its own. */
export const submitters: Access = ['admin', 'operator', 'tenant']
/** Changes how work is shared and limited. */
export const operators: Access = ['admin', 'operator']
export const admins: Access = ['admin']
