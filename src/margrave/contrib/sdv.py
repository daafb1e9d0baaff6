"""The interface of SDV's single-table synthesizers, and its metadata as a schema."""

from __future__ import annotations

from os import PathLike
from typing import Any

from margrave.codebooks.read import schema_of_variables
from margrave.codebooks.sdv import read_sdv
from margrave.contrib.synthesizer import Synthesizer, check_options
from margrave.error_sanitizer import short_errors
from margrave.errors import InputError
from margrave.schema import Schema


@short_errors
def schema_of_sdv(metadata: Any, *, ranges_are_public: bool = False) -> Schema:
    """Return a schema from the metadata of one SDV table, V1 or V2: an object or its dict.

    Names and kinds of columns are taken as public. A number is whole if its ``decimal_places`` are 0 or its
    ``computer_representation`` is that of integers, whatever the rows hold. SDV reads ranges
    and categories off the rows, so they are left to be learned under the budget. Identifiers and personal data are
    left out.

    Args:
        metadata: A ``Metadata`` or ``SingleTableMetadata``, or what its ``to_dict()`` returns.
        ranges_are_public: State that ``range_min``, ``range_max`` and ``range_values`` are public
            knowledge and were not read off the rows.

    Raises:
        InputError: It is not the metadata of one table, or the table is sequential.
        SchemaError: An entry is not as SDV writes it, or no column can be synthesized.

    Privacy:
        None spent. No row is read.

    Example:
        >>> columns = {"age": {"sdtype": "numerical", "decimal_places": 0}, "id": {"sdtype": "id"}}
        >>> schema = schema_of_sdv({"columns": columns})
        >>> schema.to_learn[0].kind, schema.ignore
        ('integer', ('id',))
    """
    if isinstance(metadata, str | PathLike):
        raise InputError(
            "The metadata is a path, not the metadata of an SDV table.",
            remedy="Give Metadata.load_from_json(path), or use the schema margrave.read_code_book(path).",
        )
    plain = metadata.to_dict() if hasattr(metadata, "to_dict") else metadata
    return schema_of_variables(read_sdv(plain, ranges_public=ranges_are_public), "SDV metadata")


class SDVSynthesizer(Synthesizer):
    """A synthesizer with the interface of SDV's, such as ``GaussianCopulaSynthesizer``.

    It has ``fit``, ``sample(num_rows=...)``, ``get_metadata``, ``save`` and ``load``. Unlike SDV's, it
    is differentially private, fits once, learns ranges under the budget, and has no identifiers in
    its rows. Numbers come as whole numbers if the metadata says that they are, as with
    ``"computer_representation": "Int64"``. In place of ``sample_from_conditions`` it has
    ``sample(num_rows, where={"sex": "F"})``, and ``release.complete(rows)`` in place of ``sample_remaining_columns``.

    Args:
        metadata: As for ``schema_of_sdv``.
        epsilon: At most 10,000.
        delta: At most 0.01.
        ranges_are_public: As for ``schema_of_sdv``.
        options: Those of ``margrave.synthesize``.

    Raises:
        InputError: As ``schema_of_sdv``, or ``synthesize`` has no option of a name.
        SchemaError: As ``schema_of_sdv``.
    """

    def __init__(
        self,
        metadata: Any,
        *,
        epsilon: float,
        delta: float,
        ranges_are_public: bool = False,
        **options: Any,
    ) -> None:
        check_options(options)
        self._metadata = metadata
        schema = schema_of_sdv(metadata, ranges_are_public=ranges_are_public)
        super().__init__(schema, epsilon=epsilon, delta=delta, **options)

    def get_metadata(self) -> Any:
        """Return the metadata as it was given.

        Raises:
            InputError: The synthesizer was loaded from a file, which does not hold the metadata.
        """
        if "_metadata" not in vars(self):
            raise InputError(
                "The file of a synthesizer does not hold the metadata of SDV.",
                remedy="Keep it in a file of its own: metadata.save_to_json(path).",
            )
        return self._metadata
