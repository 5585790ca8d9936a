"""The doctor's answer as a versioned document, like our other data files (kind ``DoctorReport``)."""

from pydantic import TypeAdapter

from planner.diagnosis.finding import DoctorReport
from planner.documents.data import DataKind

DOCTOR_REPORT: DataKind[DoctorReport] = DataKind("DoctorReport", TypeAdapter(DoctorReport))
