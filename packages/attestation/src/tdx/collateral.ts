/**
 * What a TDX quote is judged against, as Intel's PCS answers it; the names are those of Intel's `sgx_ql_qve_collateral_t`
 * as its users write them in JSON. Issuer chains are PEM, leaf first; CRLs are DER in hex; `tcb_info` and `qe_identity` are
 * the exact JSON texts that Intel signed.
 */
export type Collateral = {
  pck_crl_issuer_chain: string
  root_ca_crl: string
  pck_crl: string
  tcb_info_issuer_chain: string
  tcb_info: string
  tcb_info_signature: string
  qe_identity_issuer_chain: string
  qe_identity: string
  qe_identity_signature: string
}
